package sip

// Classes of octets by RFC 3261 section 25.1. Where the program takes more than the grammar does, the comment says so:
// those octets are seen on real networks and mislead no reader.
const (
	isToken  = 1 << iota // token
	isUser               // user and user parameters; '#', which phones dial unescaped, is taken too
	isPass               // password
	isHost               // letters, digits, '-' and '.'; '_' is taken too, names of containers have it
	isParam              // paramchar of a URI parameter
	isHeader             // headers part of a URI, '=' and '&' included
	isURIC               // what follows the scheme of a URI that is not sip or sips
	isValue              // unquoted value of a header parameter: all but controls, white space and ; , < > " \
	isHex                //
	isDigit              //
	isScheme             // behind the first letter of a scheme
	isWord               // an octet of a Call-ID
	isShape              // what may stand in some URI: no control, white space, '<', '>' or quote
)

const (
	letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	digits  = "0123456789"
	plain   = letters + digits + "-_.!~*'()" + "%" // unreserved, and the start of an escape, checked by whoever decodes
)

var (
	class = classes()
	lower = lowers()
)

func classes() (t [256]uint16) {
	set := func(bit uint16, chars string) {
		for i := range len(chars) {
			t[chars[i]] |= bit
		}
	}
	set(isToken, letters+digits+"-.!%*_+`'~")
	set(isUser, plain+"&=+$,;?/#")
	set(isPass, plain+"&=+$,#")
	set(isHost, letters+digits+"-._")
	set(isParam, plain+"[]/:&+$")
	set(isHeader, plain+"[]/?:+$=&")
	set(isURIC, plain+";/?:@&=+$,[]#")
	set(isHex, digits+"abcdefABCDEF")
	set(isDigit, digits)
	set(isScheme, letters+digits+"+-.")
	for c := 0x21; c < 256; c++ {
		if c == 0x7f {
			continue
		}
		t[c] |= isWord | isShape
		switch c {
		case ';', ',', '<', '>', '"', '\\':
		default:
			t[c] |= isValue
		}
	}
	for _, c := range `<>"` {
		t[c] &^= isShape
	}
	return t
}

func lowers() (t [256]byte) {
	for i := range t {
		t[i] = byte(i)
		if 'A' <= i && i <= 'Z' {
			t[i] = byte(i) + 'a' - 'A'
		}
	}
	return t
}

// all says that every octet of b is of a class.
func all(b []byte, bit uint16) bool {
	for _, c := range b {
		if class[c]&bit == 0 {
			return false
		}
	}
	return true
}

// run gives the index behind the octets of a class that stand at i.
func run(b []byte, i int, bit uint16) int {
	for i < len(b) && class[b[i]]&bit != 0 {
		i++
	}
	return i
}

// blank is white space inside a line.
func blank(c byte) bool { return c == ' ' || c == '\t' }

// space is white space of a field value, the octets of a fold included: Parse has made sure that a CR or LF inside a
// value is always a fold.
func space(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// skipSpace gives the index of the first octet from i on that is no white space.
func skipSpace(b []byte, i int) int {
	for i < len(b) && space(b[i]) {
		i++
	}
	return i
}

// trim takes white space off both ends.
func trim(b []byte) []byte {
	b = b[skipSpace(b, 0):]
	return trimEnd(b)
}

func trimEnd(b []byte) []byte {
	for len(b) > 0 && space(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return b
}

// quotedEnd gives the index behind the quoted string that begins at i; -1 when nothing closes it.
func quotedEnd(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

// skipElement gives what is left behind the next comma from i on that stands outside quotes and angle brackets; nil
// when there is none. It is how a list goes on behind an element that could not be read.
func skipElement(b []byte, i int) []byte {
	for angle := false; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"' && !angle:
			end := quotedEnd(b, i)
			if end < 0 {
				return nil
			}
			i = end - 1
		case c == '<':
			angle = true
		case c == '>':
			angle = false
		case c == ',' && !angle:
			return b[i+1:]
		}
	}
	return nil
}
