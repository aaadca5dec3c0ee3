package h2

import (
	"errors"
	"net/http"

	"github.com/wyegate/wyegate/internal/http1"
)

// answer turns the response that the forwarder writes as HTTP/1.1 into one of HTTP/2. What was written of a body is sent
// before the write returns.
type answer struct {
	st      *Stream
	forHead bool

	head     http1.Head
	text     []byte // of a head or of trailers, as far as it has come
	state    answerState
	left     int64 // of a body of known length
	chunks   http1.Chunks
	trailers http1.Head
}

type answerState uint8

const (
	inHead answerState = iota
	inSized
	inChunks
	inTrailers
	atEnd
)

func (a *answer) init(st *Stream, forHead bool) { a.st, a.forHead = st, forHead }

// whole says whether the response has ended as it must.
func (a *answer) whole() bool { return a.state == atEnd }

// errAnswer says that the forwarder has written what is no response: a fault of ours.
var errAnswer = errors.New("h2: response of the forwarder is malformed")

// take takes octets of the response. An error other than errAnswer is the client's.
func (a *answer) take(b []byte) error {
	began := a.state
	for len(b) > 0 {
		n, err := a.step(b)
		if err != nil {
			return err
		}
		b = b[n:]
	}
	if a.state == atEnd && (began == inHead || a.st.s.whole) || a.state == inHead {
		return nil // it goes out with the end of the stream, at once
	}
	return http.NewResponseController(a.st.w).Flush()
}

func (a *answer) step(b []byte) (n int, err error) {
	switch a.state {
	case inHead:
		return a.takeHead(b)
	case inSized:
		n = int(min(a.left, int64(len(b))))
		if a.left -= int64(n); a.left == 0 {
			a.state = atEnd
		}
		_, err = a.st.w.Write(b[:n])
		return n, err
	case inChunks:
		return a.takeChunks(b)
	case inTrailers:
		return a.takeTrailers(b)
	}
	return 0, errAnswer
}

// gather puts b behind what has come of a head. It gives all of it, and what of it is not of b.
func (a *answer) gather(b []byte) (all []byte, before int) {
	if len(a.text) == 0 {
		return b, 0
	}
	before = len(a.text)
	a.text = append(a.text, b...)
	return a.text, before
}

func (a *answer) takeHead(b []byte) (int, error) {
	all, before := a.gather(b)
	n, err := a.head.ParseResponse(all, &limitsOfAnswers)
	if err != nil {
		return 0, errors.Join(errAnswer, err)
	}
	if n == 0 {
		a.text = append(a.text[:0], all...)
		return len(b), nil
	}
	a.text = a.text[:0]
	h := &a.head
	f, _, err := h.ResponseFraming(a.forHead)
	if err != nil {
		return 0, errors.Join(errAnswer, err)
	}
	h.CutHopByHop()
	a.fields(h, h.Status >= 200)
	a.st.w.WriteHeader(h.Status)
	clear(a.st.w.Header())
	if h.Status < 200 {
		h.Reset()
		return n - before, nil
	}
	switch f.Kind {
	case http1.Sized:
		a.state, a.left = inSized, f.Length
	case http1.Chunked:
		a.state, a.chunks = inChunks, http1.Chunks{Bare: true}
	default:
		a.state = atEnd
	}
	if a.state == inSized && a.left == 0 {
		a.state = atEnd
	}
	return n - before, nil
}

// fields copies the field lines. Where the server has none of them the library must add none: a nil line says so.
func (a *answer) fields(h *http1.Head, final bool) {
	to := a.st.w.Header()
	if final {
		to["Date"], to["Content-Type"], to["Content-Length"] = nil, nil, nil
	}
	for i := range h.Fields {
		if f := &h.Fields[i]; f.Cut == http1.Keep {
			name := http.CanonicalHeaderKey(string(h.NameOf(f)))
			to[name] = append(to[name], string(h.ValueOf(f)))
		}
	}
	if final && a.st.c.leaves() {
		to["Connection"] = []string{"close"} // the library makes a GOAWAY of it
	}
}

func (a *answer) takeChunks(b []byte) (int, error) {
	pass, skip, err := a.chunks.Step(b)
	if err != nil {
		return 0, errors.Join(errAnswer, err)
	}
	if pass > 0 {
		if _, err := a.st.w.Write(b[:pass]); err != nil {
			return 0, err
		}
	}
	if a.chunks.AtTrailers() {
		a.state = inTrailers
	}
	return pass + skip, nil
}

// takeTrailers sends trailers as trailers (HB-7). They are announced by their names alone, as the library wants it.
func (a *answer) takeTrailers(b []byte) (int, error) {
	all, before := a.gather(b)
	n, err := a.trailers.ParseTrailers(all, &limitsOfAnswers)
	if err != nil {
		return 0, errors.Join(errAnswer, err)
	}
	if n == 0 {
		a.text = append(a.text[:0], all...)
		return len(b), nil
	}
	to := a.st.w.Header()
	for i := range a.trailers.Fields {
		f := &a.trailers.Fields[i]
		name := http.TrailerPrefix + http.CanonicalHeaderKey(string(a.trailers.NameOf(f)))
		to[name] = append(to[name], string(a.trailers.ValueOf(f)))
	}
	a.state = atEnd
	return n - before, nil
}
