package http1

import (
	"bytes"
	"encoding/binary"
)

// ParseRequest indexes a request head in b. It gives the length of the head, or 0 when more is needed: then it is called
// again with the same bytes and more behind them (they may have moved). Work is linear in the length, however the bytes
// come. HF-4, HF-6 (the parts a head alone shows), HB-8.
func (h *Head) ParseRequest(b []byte, lim *Limits) (int, error) {
	h.Buf = b
	for !h.startDone {
		line, err := h.line(b)
		if err != nil {
			return 0, err
		}
		if line == nil {
			return 0, h.unfinished(b, lim)
		}
		if len(line) == 0 {
			if h.empty++; h.empty > 2 {
				return 0, ErrEmptyLines
			}
			continue
		}
		start := h.at - uint32(len(line)) - 2
		h.Line = Span{start, start + uint32(len(line))}
		if err := h.requestLine(line, start, lim); err != nil {
			return 0, err
		}
		h.startDone = true
	}
	return h.fields(b, lim)
}

// line gives the next line without its CRLF and moves on; nil when its end has not come. An empty line is not nil.
func (h *Head) line(b []byte) ([]byte, error) {
	nl := bytes.IndexByte(b[h.scan:], '\n')
	if nl < 0 {
		h.scan = uint32(len(b))
		return nil, nil
	}
	end := h.scan + uint32(nl)
	if end == h.at || b[end-1] != '\r' {
		return nil, ErrBareLF
	}
	line := b[h.at : end-1 : end-1]
	h.at, h.scan = end+1, end+1
	return line, nil
}

// unfinished looks at a start line whose end has not come: what can't become a request is refused at once, so that
// nobody waits for the timer with a TLS hello or a line without end.
func (h *Head) unfinished(b []byte, lim *Limits) error {
	part := b[h.at:]
	if len(part) == 0 || part[0] == '\r' && len(part) == 1 {
		return nil
	}
	sp := bytes.IndexByte(part, ' ')
	if sp < 0 {
		if len(part) > maxMethod || fold[part[0]] == 0 {
			return ErrMethod
		}
		return nil
	}
	if lim.Target > 0 && len(part)-sp-1 > lim.Target+len(" HTTP/1.1\r") {
		return ErrTargetLong
	}
	if lim.Block > 0 && len(part) > lim.Block {
		return ErrHeadLong
	}
	return nil
}

const maxMethod = 64

func (h *Head) requestLine(line []byte, start uint32, lim *Limits) error {
	sp := bytes.IndexByte(line, ' ')
	if sp < 0 {
		return ErrRequestLine
	}
	if sp > maxMethod || !IsToken(line[:sp]) {
		return ErrMethod
	}
	rest := line[sp+1:]
	n := bytes.IndexByte(rest, ' ')
	if n < 0 {
		return ErrOldVersion
	}
	target, version := rest[:n], rest[n+1:]
	if err := h.version(version); err != nil {
		return err
	}
	if len(target) == 0 {
		return ErrRequestLine
	}
	if lim.Target > 0 && len(target) > lim.Target {
		return ErrTargetLong
	}
	if hasControl(target) || bytes.IndexByte(target, '#') >= 0 || bytes.IndexByte(target, '\t') >= 0 {
		return ErrTarget
	}
	at := start + uint32(sp) + 1
	h.Method = Span{start, at - 1}
	h.Target = Span{at, at + uint32(n)}
	return nil
}

// version takes 1.0 and 1.1. The name is in capitals (RFC 9112 2.3); HTTP/0.9 has its own answer (HF-6).
func (h *Head) version(v []byte) error {
	switch string(v) {
	case "HTTP/1.1":
		h.Minor = 1
		return nil
	case "HTTP/1.0":
		h.Minor = 0
		return nil
	case "HTTP/0.9":
		return ErrOldVersion
	}
	if len(v) == 8 && string(v[:5]) == "HTTP/" && isDigit(v[5]) && v[6] == '.' && isDigit(v[7]) {
		return ErrOtherVersion
	}
	return ErrVersion
}

// ParseResponse indexes a response head in b, as ParseRequest does a request. Nothing may stand before the status line.
// HF-7.
func (h *Head) ParseResponse(b []byte, lim *Limits) (int, error) {
	h.Buf = b
	if !h.startDone {
		line, err := h.line(b)
		if err != nil {
			return 0, err
		}
		if line == nil {
			if len(b) >= 5 && string(b[:5]) != "HTTP/" || lim.Block > 0 && len(b) > lim.Block {
				return 0, ErrStatusLine
			}
			return 0, nil
		}
		h.Line = Span{0, uint32(len(line))}
		if err := h.statusLine(line); err != nil {
			return 0, err
		}
		h.startDone = true
	}
	return h.fields(b, lim)
}

func (h *Head) statusLine(line []byte) error {
	if len(line) < 12 || line[8] != ' ' || h.version(line[:8]) != nil {
		return ErrStatusLine
	}
	for _, c := range line[9:12] {
		if !isDigit(c) {
			return ErrStatusLine
		}
		h.Status = h.Status*10 + int(c-'0')
	}
	if h.Status < 100 || len(line) > 12 && line[12] != ' ' || hasControl(line[12:]) {
		return ErrStatusLine
	}
	h.Reason = Span{12, uint32(len(line))}
	if len(line) > 12 {
		h.Reason.Start++
	}
	return nil
}

// ParseTrailers indexes a trailer section in b; like ParseRequest it gives 0 while more is needed. The head must have
// been Reset. HF-5.
func (h *Head) ParseTrailers(b []byte, lim *Limits) (int, error) {
	h.Buf = b
	n, err := h.fields(b, lim)
	if err == ErrHeadLong {
		err = ErrTrailerLong
	}
	return n, err
}

func (h *Head) fields(b []byte, lim *Limits) (int, error) {
	for {
		start := h.at
		line, err := h.line(b)
		if err != nil {
			return 0, err
		}
		if lim.Block > 0 && int(h.scan-h.Line.Start) > lim.Block {
			return 0, ErrHeadLong
		}
		if line == nil {
			return 0, nil
		}
		if len(line) == 0 {
			h.Len = int(h.at)
			return h.Len, nil
		}
		if len(h.Fields) >= MaxFields || lim.Fields > 0 && len(h.Fields) >= lim.Fields {
			return 0, ErrFieldCount
		}
		if err := h.field(line, start); err != nil {
			return 0, err
		}
	}
}

func (h *Head) field(line []byte, start uint32) error {
	if line[0] == ' ' || line[0] == '\t' {
		return ErrFieldStart
	}
	colon := 0
	for colon < len(line) && fold[line[colon]] != 0 {
		colon++
	}
	if colon == 0 || colon == len(line) || line[colon] != ':' {
		return ErrFieldName
	}
	from, to := colon+1, len(line)
	for from < to && (line[from] == ' ' || line[from] == '\t') {
		from++
	}
	for to > from && (line[to-1] == ' ' || line[to-1] == '\t') {
		to--
	}
	if hasControl(line[from:to]) {
		return ErrFieldValue
	}
	f := Field{
		Name:  Span{start, start + uint32(colon)},
		Value: Span{start + uint32(from), start + uint32(to)},
		End:   start + uint32(len(line)) + 2,
	}
	if f.ID, f.Twin = IDOf(line[:colon]); f.Twin {
		f.Cut = CutTwin
	} else if f.ID != Other {
		if h.count[f.ID]++; h.first[f.ID] == 0 {
			h.first[f.ID] = uint8(len(h.Fields)) + 1
		}
	}
	h.Fields = append(h.Fields, f)
	return nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// hasControl looks for controls other than the tab, eight octets at a time: a word is looked at singly only when one of
// its octets is below 0x20 or is 0x7f.
func hasControl(b []byte) bool {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for len(b) >= 8 {
		w := binary.LittleEndian.Uint64(b)
		del := w ^ 0x7f*ones
		if ((w-0x20*ones)&^w|(del-ones)&^del)&highs != 0 && anyControl(b[:8]) {
			return true
		}
		b = b[8:]
	}
	return anyControl(b)
}

func anyControl(b []byte) bool {
	for _, c := range b {
		if c < 0x20 && c != '\t' || c == 0x7f {
			return true
		}
	}
	return false
}
