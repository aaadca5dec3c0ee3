package resolver

// number is a telephone number as an integer with its count of digits: leading zeros count.
type number uint64

const digitsShift = 56

// parseNumber reads 1 to 15 digits. Anything else is never asked for, so that outsiders cannot make us ask for names
// of their choice.
func parseNumber(digits []byte) (number, bool) {
	if len(digits) < 1 || len(digits) > 15 {
		return 0, false
	}
	n := number(0)
	for _, d := range digits {
		if d < '0' || d > '9' {
			return 0, false
		}
		n = n*10 + number(d-'0')
	}
	return n | number(len(digits))<<digitsShift, true
}

// digits writes the number out.
func (n number) digits() string {
	b := make([]byte, n>>digitsShift)
	v := n & (1<<digitsShift - 1)
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = byte('0' + v%10)
		v /= 10
	}
	return string(b)
}

// domain is the name to ask for (RFC 6116 section 3.2): digits from the last to the first under the suffix.
func (n number) domain(suffix string) string {
	d := n.digits()
	b := make([]byte, 0, 2*len(d)+len(suffix)+1)
	for i := len(d) - 1; i >= 0; i-- {
		b = append(b, d[i], '.')
	}
	return string(append(b, suffix...))
}
