package sip

import "bytes"

// ViaValue is one value of a Via field.
type ViaValue struct {
	Transport []byte
	Host      []byte // IPv6 with brackets
	Port      []byte // nil when not written
	Params    []byte // first ';' included
	Branch    []byte // nil when absent
	Value     []byte // the whole value, trimmed
}

// NextVia reads the first value of a Via field and gives what is left behind the comma; nil when no comma follows. With
// an error v still holds what could be read: with a Host an answer can be sent (ST-6).
func NextVia(b []byte) (v ViaValue, rest []byte, err error) {
	end, ok := v.parse(b)
	if !ok {
		return v, skipElement(b, 0), errVia
	}
	if end < len(b) {
		rest = b[end+1:]
	}
	return v, rest, nil
}

var viaPrefix = []byte("SIP/2.0/")

// parse reads a value and gives the index of the comma behind it, or of the end.
func (v *ViaValue) parse(b []byte) (end int, ok bool) {
	start := skipSpace(b, 0)
	i := start
	if bytes.HasPrefix(b[i:], viaPrefix) {
		i += len(viaPrefix)
	} else if i, ok = viaProtocol(b, i); !ok {
		return 0, false
	}
	i = skipSpace(b, i)
	end = run(b, i, isToken)
	v.Transport = b[i:end]
	if i = skipSpace(b, end); i == end || len(v.Transport) == 0 {
		return 0, false
	}
	if i, ok = v.sentBy(b, i); !ok {
		return 0, false
	}
	params := i
	for i < len(b) && b[i] == ';' {
		name, value, has, next, ok := nextParam(b, i)
		if !ok {
			return 0, false
		}
		if has && v.Branch == nil && len(name) == 6 && EqualFold(name, "branch") {
			v.Branch = value
		}
		i = next
	}
	if i < len(b) && b[i] != ',' {
		return 0, false
	}
	if i > params {
		v.Params = trimEnd(b[params:i])
	}
	v.Value = trimEnd(b[start:i])
	return i, true
}

// viaProtocol reads a name and a version with their slashes, white space round them as RFC 3261 25.1 has it.
func viaProtocol(b []byte, i int) (next int, ok bool) {
	for range 2 {
		end := run(b, i, isToken)
		slash := skipSpace(b, end)
		if end == i || slash == len(b) || b[slash] != '/' {
			return 0, false
		}
		i = skipSpace(b, slash+1)
	}
	return i, true
}

// sentBy reads host and port and gives the index of the first octet behind them that is no white space.
func (v *ViaValue) sentBy(b []byte, i int) (next int, ok bool) {
	n := hostLen(b[i:])
	if n == 0 {
		return 0, false
	}
	v.Host = b[i : i+n]
	i = skipSpace(b, i+n)
	if i < len(b) && b[i] == ':' {
		i = skipSpace(b, i+1)
		end := run(b, i, isDigit)
		if _, ok := ParsePort(b[i:end]); !ok {
			return 0, false
		}
		v.Port = b[i:end]
		i = skipSpace(b, end)
	}
	return i, true
}
