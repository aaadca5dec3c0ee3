package sip

import "math"

// routeEdit is what shall become of the Route values; it is resolved when the message is written, so that the order of
// the calls does not matter.
type routeEdit struct {
	pop    int  // values taken off the top
	last   bool // the last one taken off
	append bool
	uri    Span // in texts
}

// PopRoutes takes the first n Route values away (SR-1c). The largest n of several calls counts.
func (e *Edits) PopRoutes(n int) { e.routes.pop = max(e.routes.pop, n) }

// DropLastRoute takes the last Route value away: with SetRequestURI it undoes what a strict router did (SR-1a).
func (e *Edits) DropLastRoute() { e.routes.last = true }

// AppendRoute puts a URI behind the last Route value: with PopRoutes and SetRequestURI it prepares the request for a
// strict router (SR-3).
func (e *Edits) AppendRoute(uri []byte) {
	e.routes.append, e.routes.uri = true, e.text(uri)
}

// SetRequestURI puts another Request-URI in the start line.
func (e *Edits) SetRequestURI(uri []byte) {
	e.set(op{at: e.m.URI.Start, cut: uint32(e.m.URI.Len()), rank: replace, put: e.text(uri)})
}

// resolveRoutes turns the wishes into edits of the Route fields.
func (e *Edits) resolveRoutes() {
	r := &e.routes
	if r.pop == 0 && !r.last && !r.append || e.m.count[Route] == 0 && !r.append {
		return
	}
	k := keeper{e: e, from: r.pop, to: math.MaxInt}
	if r.last {
		k.to = -1
		for it := e.m.Addrs(Route); it.Next(); {
			k.to++
		}
	}
	for i := range e.m.Fields {
		if f := &e.m.Fields[i]; f.ID == Route {
			k.field(f)
		}
	}
	if r.append {
		e.appendRoute(k.end, k.kept)
	}
}

// keeper walks over the Route fields and cuts the values whose number is not in [from, to).
type keeper struct {
	e        *Edits
	from, to int
	n        int    // values seen
	end      uint32 // end of the last value kept
	kept     bool
}

func (k *keeper) field(f *Field) {
	b := k.e.m.Bytes(f.Value)
	first, last, start := -1, 0, 0
	values := 0
	for rest := b; len(trim(rest)) > 0; k.n++ {
		at := len(b) - len(rest)
		_, next, _ := NextNameAddr(rest)
		end := len(b) - len(next)
		if next != nil {
			end-- // the comma
		}
		if k.n >= k.from && k.n < k.to {
			if first < 0 {
				first, start = values, skipSpace(b, at)
			}
			last = len(trimEnd(b[:end]))
		}
		values++
		rest = next
	}
	if first < 0 {
		k.e.work = append(k.e.work, op{at: f.Line.Start, cut: uint32(f.Line.Len()), rank: cutOut})
		return
	}
	k.kept, k.end = true, f.Value.Start+uint32(last)
	if first > 0 {
		k.e.work = append(k.e.work, op{at: f.Value.Start, cut: uint32(start), rank: cutOut})
	}
	if k.end < f.Value.End && k.n > k.to {
		k.e.work = append(k.e.work, op{at: k.end, cut: f.Value.End - k.end, rank: cutOut})
	}
}

// appendRoute puts the URI behind the value that ends at end, or in a field of its own when no value is left.
func (e *Edits) appendRoute(end uint32, kept bool) {
	uri := e.routes.uri.Of(e.texts)
	if kept {
		e.work = append(e.work, op{at: end, rank: putRoute, put: e.text([]byte(", <"), uri, []byte(">"))})
		return
	}
	at := e.m.fieldsEnd()
	if f := e.m.First(Route); f != nil {
		at = f.Line.Start
	}
	e.work = append(e.work, op{at: at, rank: putRoute, put: e.text([]byte("Route: <"), uri, []byte(">\r\n"))})
}

// AddRecordRoute puts a Record-Route field above all received ones (SR-4). Of a pair, the entry for the side to which
// the request goes is added first: it stands on top (SR-5).
func (e *Edits) AddRecordRoute(value []byte) { e.addAbove(RecordRoute, putRecordRoute, value) }

// AddPath puts a Path field above all received ones (SR-6); of several the one added first stands on top.
func (e *Edits) AddPath(value []byte) { e.addAbove(Path, putPath, value) }

func (e *Edits) addAbove(id HeaderID, r rank, value []byte) {
	at := e.m.viasEnd()
	if f := e.m.First(id); f != nil {
		at = f.Line.Start
	}
	e.add(op{at: at, rank: r, put: e.text([]byte(id.String()), []byte(": "), value, lineEnd)})
}

// viasEnd is the place behind the topmost block of Via fields.
func (m *Msg) viasEnd() uint32 {
	i := int(m.first[Via]) - 1
	if i < 0 {
		return m.start.End + 2
	}
	for i+1 < len(m.Fields) && m.Fields[i+1].ID == Via {
		i++
	}
	return m.Fields[i].Line.End
}

// fieldsEnd is the place behind the last field.
func (m *Msg) fieldsEnd() uint32 {
	if n := len(m.Fields); n > 0 {
		return m.Fields[n-1].Line.End
	}
	return m.start.End + 2
}
