package sip

import "strconv"

// hops is the Max-Forwards that a request without one gets (RFC 3261 section 16.6 item 3).
const hops = "70"

// DecrementHops takes one from Max-Forwards and keeps the rest of its line, or puts a field with 70 when there is none
// (SV-3). It never goes below zero, and leaves alone what is no number from 0 to 255: Validate has refused that.
func (e *Edits) DecrementHops() {
	f := e.m.First(MaxForwards)
	if f == nil {
		e.put(MaxForwards.String(), []byte(hops))
		return
	}
	n, err := ParseMaxForwards(e.m.Bytes(f.Value))
	if err != nil || n == 0 {
		return
	}
	var text [4]byte
	e.setValue(f, strconv.AppendUint(text[:0], uint64(n-1), 10))
}

// Frame makes the message one that a stream can carry: where it came by a transport that frames (UDP, WebSocket) and
// leaves by one that does not, it must say its length and end its head. What is there already stays as it is.
func (e *Edits) Frame() {
	e.SetContentLength(e.m.Body.Len())
	if e.m.Unended {
		e.set(op{at: e.m.Head.End, rank: putEnd, put: e.text(lineEnd)})
	}
}

// SetContentLength makes Content-Length say n. A field that says so already stays.
func (e *Edits) SetContentLength(n int) {
	var text [20]byte
	value := strconv.AppendUint(text[:0], uint64(n), 10)
	f := e.m.First(ContentLength)
	if f == nil {
		e.put(ContentLength.String(), value)
		return
	}
	if got, err := ParseContentLength(e.m.Bytes(f.Value)); err != nil || got != n {
		e.setValue(f, value)
	}
}

// SetStatus puts another status and reason in the status line (SH-3).
func (e *Edits) SetStatus(code int, reason string) {
	var text [20]byte
	from, to := min(e.m.Version.End+1, e.m.start.End), e.m.start.End
	put := e.text(strconv.AppendUint(text[:0], uint64(code), 10))
	e.texts = append(append(e.texts, ' '), reason...)
	put.End = uint32(len(e.texts))
	e.set(op{at: from, cut: to - from, rank: replace, put: put})
}

func (e *Edits) setValue(f *Field, value []byte) {
	e.set(op{at: f.Value.Start, cut: uint32(f.Value.Len()), rank: replace, put: e.text(value)})
}

// Set makes the message have one field of this name with this value: the first one gets it, others go, and without one a
// field is put behind the last. It is false, and nothing is done, when name or value have an octet that must not stand
// there.
func (e *Edits) Set(name string, value []byte) bool {
	if !cleanName(name) || !cleanValue(value) {
		return false
	}
	found := false
	for i := range e.m.Fields {
		f := &e.m.Fields[i]
		if !e.m.named(f, name) {
			continue
		}
		if found {
			e.cut(f.Line)
			continue
		}
		found = true
		e.setValue(f, value)
	}
	if !found {
		e.put(name, value)
	}
	return true
}

// Remove takes all fields of a known name away.
func (e *Edits) Remove(id HeaderID) {
	if e.m.count[id] == 0 {
		return
	}
	for i := range e.m.Fields {
		if f := &e.m.Fields[i]; f.ID == id {
			e.cut(f.Line)
		}
	}
}

// RemoveName takes all fields of a name away, written long, compact or in any case.
func (e *Edits) RemoveName(name string) {
	for i := range e.m.Fields {
		if f := &e.m.Fields[i]; e.m.named(f, name) {
			e.cut(f.Line)
		}
	}
}

// named says that a field has this name in one of its spellings.
func (m *Msg) named(f *Field, name string) bool {
	if f.ID != HeaderOther {
		long := &names[f.ID]
		return len(name) > 1 && equalFoldString(name, long.long) ||
			len(name) == 1 && long.compact != 0 && lower[name[0]] == long.compact
	}
	return EqualFold(m.Bytes(f.Name), name)
}

// put puts a field behind the last one, in place of one of the same name that was put before.
func (e *Edits) put(name string, value []byte) {
	start := uint32(len(e.texts))
	e.texts = append(append(append(append(e.texts, name...), ": "...), value...), lineEnd...)
	o := op{at: e.m.fieldsEnd(), rank: putField, put: Span{start, uint32(len(e.texts))}}
	for i := range e.ops {
		p := &e.ops[i]
		if p.rank != putField {
			continue
		}
		if t := p.put.Of(e.texts); len(t) > len(name) && t[len(name)] == ':' && EqualFold(t[:len(name)], name) {
			p.put = o.put
			return
		}
	}
	e.ops = append(e.ops, o)
}

func cleanName(name string) bool {
	for i := range len(name) {
		if class[name[i]]&isToken == 0 {
			return false
		}
	}
	return len(name) > 0
}

func cleanValue(value []byte) bool {
	for _, c := range value {
		if c == '\r' || c == '\n' || c == 0 {
			return false
		}
	}
	return true
}
