package sip

import "bytes"

// NameAddr is a name-addr or addr-spec of a header field with the parameters that belong to the header.
type NameAddr struct {
	Display []byte // with quotes and escapes as received; nil when none
	URI     []byte // between the brackets; without brackets up to the first ';', ',', '?' or blank
	Params  []byte // header parameters, first ';' included
	Value   []byte // the whole element, trimmed
}

// NextNameAddr reads the first element of a comma-separated list and gives what is left behind the comma; nil when no
// comma follows. White space and folds are as RFC 3261 25.1 allows. After an error rest is what follows the broken
// element, so that a reader can go on. From, To and other single fields are for ParseNameAddr.
func NextNameAddr(b []byte) (na NameAddr, rest []byte, err error) {
	end, ok := na.parse(b, true)
	if !ok {
		return na, skipElement(b, 0), errNameAddr
	}
	if end < len(b) {
		rest = b[end+1:]
	}
	return na, rest, nil
}

// ParseNameAddr reads the one address of a field that is no list: From, To, Refer-To, Referred-By. A comma in an unquoted
// display name separates nothing there (RFC 4475 3.1.2.15).
func ParseNameAddr(b []byte) (na NameAddr, err error) {
	if _, ok := na.parse(b, false); !ok {
		return na, errNameAddr
	}
	return na, nil
}

// parse reads an element and gives the index of the comma behind it, or of the end.
func (na *NameAddr) parse(b []byte, list bool) (end int, ok bool) {
	start := skipSpace(b, 0)
	i, ok := na.display(b, start, list)
	if !ok {
		return 0, false
	}
	if i < len(b) && b[i] == '<' {
		close := bytes.IndexByte(b[i:], '>')
		if close < 0 {
			return 0, false
		}
		na.URI = trim(b[i+1 : i+close])
		i += close + 1
	} else {
		uri := i
		for i < len(b) && !space(b[i]) && b[i] != ';' && b[i] != ',' && b[i] != '?' {
			i++
		}
		na.URI = b[uri:i]
		if i < len(b) && b[i] == '?' {
			i = run(b, i+1, isHeader) // headers of a bare URI: RFC 3261 section 20 wants brackets round it
		}
	}
	if !uriShape(na.URI) {
		return 0, false
	}
	i = skipSpace(b, i)
	params := i
	for i < len(b) && b[i] == ';' {
		_, _, _, next, ok := nextParam(b, i)
		if !ok {
			return 0, false
		}
		i = next
	}
	if i < len(b) && (b[i] != ',' || !list) {
		return 0, false
	}
	if i > params {
		na.Params = trimEnd(b[params:i])
	}
	na.Value = trimEnd(b[start:i])
	return i, true
}

// display reads what stands before '<' and gives its index, or start when the element has no brackets.
func (na *NameAddr) display(b []byte, start int, list bool) (i int, ok bool) {
	if start < len(b) && b[start] == '"' {
		end := quotedEnd(b, start)
		if end < 0 {
			return 0, false
		}
		na.Display = b[start:end]
		i = skipSpace(b, end)
		return i, i < len(b) && b[i] == '<'
	}
	for i = start; i < len(b); i++ {
		switch b[i] {
		case '<':
			if d := trimEnd(b[start:i]); len(d) > 0 {
				na.Display = d
			}
			return i, true
		case ';':
			return start, true
		case ',':
			if list {
				return start, true
			}
		case '"':
			return 0, false
		}
	}
	return start, true
}

// uriShape says that b has a scheme and nothing in it that would end a URI.
func uriShape(b []byte) bool { return bytes.IndexByte(b, ':') > 0 && all(b, isShape) }

// nextParam reads the parameter whose ';' is at i, and gives the index of the first octet behind it that is no white
// space: ';', ',' or the end. has tells ";a=" from ";a".
func nextParam(b []byte, i int) (name, value []byte, has bool, next int, ok bool) {
	i = skipSpace(b, i+1)
	end := run(b, i, isToken)
	name = b[i:end]
	if i = skipSpace(b, end); i < len(b) && b[i] == '=' {
		has = true
		i = skipSpace(b, i+1)
		end = i
		if i < len(b) && b[i] == '"' {
			if end = quotedEnd(b, i); end < 0 {
				return name, nil, true, len(b), false
			}
		} else {
			end = run(b, i, isValue)
		}
		value = b[i:end]
		i = skipSpace(b, end)
	}
	return name, value, has, i, len(name) > 0 && (i == len(b) || b[i] == ';' || b[i] == ',')
}

// HeaderParam finds a header parameter in params (first ';' included) without case; quotes stay. The value is nil for
// ";lr", and not nil but empty for ";tag=".
func HeaderParam(params []byte, name string) (value []byte, present bool) {
	for i := 0; i < len(params) && params[i] == ';'; {
		n, v, has, next, ok := nextParam(params, i)
		if EqualFold(n, name) {
			if !has {
				return nil, true
			}
			return v, true
		}
		if !ok {
			return nil, false
		}
		i = next
	}
	return nil, false
}
