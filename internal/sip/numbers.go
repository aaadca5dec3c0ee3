package sip

import "math"

// ParseCSeq reads "number method". The error is for another shape and for a number of more than 32 bits; that a number
// above 2^31-1 is refused is Validate's affair (SV-2).
func ParseCSeq(b []byte) (number uint32, method []byte, err error) {
	b = trim(b)
	end := run(b, 0, isDigit)
	n, ok := numberOf(b[:end])
	i := skipSpace(b, end)
	if !ok || i == end || i == len(b) || !all(b[i:], isToken) {
		return 0, nil, errCSeq
	}
	return n, b[i:], nil
}

func numberOf(b []byte) (uint32, bool) {
	n, ok := number(b, math.MaxUint32)
	return uint32(n), ok
}

// ParseMaxForwards reads a number from 0 to 255 (SV-3); leading zeros are fine.
func ParseMaxForwards(b []byte) (int, error) {
	n, ok := number(trim(b), 255)
	if !ok {
		return 0, errHops
	}
	return int(n), nil
}

// ParseContentLength reads the value of Content-Length. A number that no message can have comes back as the largest
// int32 with no error, so that "too large" and "not a number" stay apart.
func ParseContentLength(b []byte) (int, error) {
	b = trim(b)
	if len(b) == 0 || !all(b, isDigit) {
		return 0, errLengthNum
	}
	n, _ := number(b, math.MaxInt32)
	return int(n), nil
}

// RetryDelay is a value of Retry-After, in seconds. A number that is too large for 31 bits comes as the largest one.
type RetryDelay struct {
	Delta    int
	Duration int // 0 when not written
}

// ParseRetryAfter reads "delta (comment);duration=n" (RFC 3261 section 20.33). Comments nest; other parameters pass.
func ParseRetryAfter(b []byte) (RetryDelay, error) {
	var r RetryDelay
	b = trim(b)
	end := run(b, 0, isDigit)
	if end == 0 {
		return r, errRetry
	}
	r.Delta = saturated(b[:end])
	i := skipSpace(b, end)
	if i < len(b) && b[i] == '(' {
		if i = commentEnd(b, i); i < 0 {
			return r, errRetry
		}
		i = skipSpace(b, i)
	}
	for i < len(b) {
		if b[i] != ';' {
			return r, errRetry
		}
		name, value, _, next, ok := nextParam(b, i)
		if !ok || next < len(b) && b[next] != ';' {
			return r, errRetry
		}
		if EqualFold(name, "duration") {
			if len(value) == 0 || !all(value, isDigit) {
				return r, errRetry
			}
			r.Duration = saturated(value)
		}
		i = next
	}
	return r, nil
}

func saturated(digits []byte) int {
	n, _ := number(digits, math.MaxInt32)
	return int(n)
}

// commentEnd gives the index behind the comment that begins at i; -1 when nothing closes it.
func commentEnd(b []byte, i int) int {
	for depth := 0; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}
