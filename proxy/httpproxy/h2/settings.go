package h2

const (
	settingOctets = 6
	settingsMost  = 100 // in one frame: the server ends the connection over more
)

// lastOfEach leaves of a SETTINGS frame the last value of each setting, which is what processing them in their order comes to
// (RFC 9113 section 6.5.3): the server takes a setting that stands twice for an attack.
func lastOfEach(f []byte) []byte {
	payload := f[frameHead:]
	n := len(payload) / settingOctets
	if len(payload)%settingOctets != 0 || n > settingsMost {
		return f
	}
	kept := 0
	for i := range n {
		s := payload[i*settingOctets:][:settingOctets]
		if again(payload[(i+1)*settingOctets:], s) {
			continue
		}
		copy(payload[kept*settingOctets:], s)
		kept++
	}
	size := kept * settingOctets
	f[0], f[1], f[2] = byte(size>>16), byte(size>>8), byte(size)
	return f[:frameHead+size]
}

func again(rest, s []byte) bool {
	for ; len(rest) > 0; rest = rest[settingOctets:] {
		if rest[0] == s[0] && rest[1] == s[1] {
			return true
		}
	}
	return false
}
