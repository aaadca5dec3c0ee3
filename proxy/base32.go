package proxy

const base32Alphabet = "abcdefghijklmnopqrstuvwxyz234567"

var base32Value = func() (t [256]byte) {
	for i := range t {
		t[i] = 0xff
	}
	for i := range len(base32Alphabet) {
		c := base32Alphabet[i]
		t[c] = byte(i)
		if c >= 'a' {
			t[c-'a'+'A'] = byte(i)
		}
	}
	return t
}()

// AppendBase32 writes src in the alphabet of RFC 4648 in lower case, without padding, unused bits zero.
func AppendBase32(dst, src []byte) []byte {
	var acc uint32
	bits := 0
	for _, b := range src {
		acc = acc<<8 | uint32(b)
		bits += 8
		for bits >= 5 {
			bits -= 5
			dst = append(dst, base32Alphabet[acc>>bits&31])
		}
	}
	if bits > 0 {
		dst = append(dst, base32Alphabet[acc<<(5-bits)&31])
	}
	return dst
}

// DecodeBase32 reads text without regard to case into dst. It refuses other characters, a length no encoding has,
// unused bits that are set, and what does not fit dst.
func DecodeBase32(dst, text []byte) (int, bool) {
	if len(text)*5/8 > len(dst) {
		return 0, false
	}
	switch len(text) % 8 {
	case 1, 3, 6:
		return 0, false
	}
	var acc uint32
	bits, n := 0, 0
	for _, c := range text {
		v := base32Value[c]
		if v == 0xff {
			return 0, false
		}
		acc = acc<<5 | uint32(v)
		bits += 5
		if bits >= 8 {
			bits -= 8
			dst[n] = byte(acc >> bits)
			n++
		}
	}
	return n, acc&(1<<bits-1) == 0
}
