package sip

import "bytes"

// values walks over the fields of one name in order; every list is read through it, so that all readers agree on which
// value comes first.
type values struct {
	m     *Msg
	id    HeaderID
	field int // index of the next field
	rest  []byte
	open  bool // rest still holds values
}

func (m *Msg) values(id HeaderID) values {
	first := len(m.Fields)
	if m.count[id] > 0 {
		first = int(m.first[id]) - 1
	}
	return values{m: m, id: id, field: first}
}

// next gives what is left of the field at hand, or the value of the next field.
func (l *values) next() ([]byte, bool) {
	for !l.open {
		if l.field >= len(l.m.Fields) {
			return nil, false
		}
		f := &l.m.Fields[l.field]
		l.field++
		if f.ID == l.id {
			l.rest = l.m.Bytes(f.Value)
			l.open = len(l.rest) > 0
		}
	}
	return l.rest, true
}

func (l *values) left(rest []byte) { l.rest, l.open = rest, len(trim(rest)) > 0 }

// AddrIter walks over the addresses of all fields of one name, element by element.
type AddrIter struct {
	Addr NameAddr
	Err  error // the element cannot be read; the walk goes on behind it

	list values
}

// Addrs walks over the addresses of Route, Contact, P-Asserted-Identity and their like. A field that is no list (From,
// To) gives its one address.
func (m *Msg) Addrs(id HeaderID) AddrIter { return AddrIter{list: m.values(id)} }

// Next steps to the next address; false when there is none.
func (it *AddrIter) Next() bool {
	b, ok := it.list.next()
	if !ok {
		return false
	}
	if it.list.id.Single() {
		it.Addr, it.Err = ParseNameAddr(b)
		it.list.left(nil)
		return true
	}
	var rest []byte
	it.Addr, rest, it.Err = NextNameAddr(b)
	it.list.left(rest)
	return true
}

// ViaIter walks over all Via values, the top one first.
type ViaIter struct {
	Via ViaValue
	Err error // the value cannot be read; the walk goes on behind it

	list values
}

// Vias walks over the Via values.
func (m *Msg) Vias() ViaIter { return ViaIter{list: m.values(Via)} }

// Next steps to the next value; false when there is none.
func (it *ViaIter) Next() bool {
	b, ok := it.list.next()
	if !ok {
		return false
	}
	var rest []byte
	it.Via, rest, it.Err = NextVia(b)
	it.list.left(rest)
	return true
}

// TokenIter walks over the comma-separated tokens of all fields of one name: Require, Proxy-Require, Supported.
type TokenIter struct {
	Token []byte

	list values
}

// Tokens walks over the tokens of a list.
func (m *Msg) Tokens(id HeaderID) TokenIter { return TokenIter{list: m.values(id)} }

// Next steps to the next token that is not empty; false when there is none.
func (it *TokenIter) Next() bool {
	for {
		b, ok := it.list.next()
		if !ok {
			return false
		}
		var rest []byte
		if i := bytes.IndexByte(b, ','); i >= 0 {
			b, rest = b[:i], b[i+1:]
		}
		it.list.left(rest)
		if it.Token = trim(b); len(it.Token) > 0 {
			return true
		}
	}
}
