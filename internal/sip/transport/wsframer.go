package transport

import (
	"bytes"

	"github.com/wyegate/wyegate/internal/sip"
	"github.com/wyegate/wyegate/internal/websocket"
)

// framer cuts what a connection brings into messages: by Content-Length on streams, by frames on a WebSocket.
type framer interface {
	Next() (sip.Piece, []byte, *sip.Error)
	Part() sip.Part
	Room(n int) []byte
	Filled(n int)
	Feed(b []byte)
	Held() bool
	Lend(b []byte)
	Reclaim() []byte
}

// wsFramer is the framer of a WebSocket. Control frames end here: pings are answered, pongs noted, a close is answered
// and ends the flow (sip-http.md section 15).
type wsFramer struct {
	websocket.Reader
	f *flow
}

// errWebSocket says that a WebSocket has ended, by the peer's wish or its fault; the close frame is queued.
var errWebSocket = &sip.Error{Reason: "websocket closed"}

func (w *wsFramer) Part() sip.Part {
	if w.Idle() {
		return sip.Between
	}
	return sip.InBody
}

func (w *wsFramer) Next() (sip.Piece, []byte, *sip.Error) {
	for {
		p, b := w.Reader.Next()
		switch p {
		case websocket.Message:
			return w.message(b)
		case websocket.Control:
			if !w.control(b) {
				return sip.Broken, nil, errWebSocket
			}
		case websocket.Broken:
			w.f.goodbye(w.Code)
			return sip.Broken, nil, errWebSocket
		default:
			return sip.More, nil, nil
		}
	}
}

// message tells keep-alives, which hold nothing but CRLFs (RFC 7118 section 6), from SIP. Answers go in the kind of frame
// that the peer used last (sip-http.md 15.4).
func (w *wsFramer) message(b []byte) (sip.Piece, []byte, *sip.Error) {
	w.f.ws.binary.Store(w.Kind == websocket.Binary)
	rest := bytes.TrimLeft(b, "\r\n")
	switch {
	case len(rest) > 0:
		return sip.Message, rest, nil
	case len(b) >= 2*len(crlf):
		return sip.Ping, nil, nil
	}
	return sip.Pong, nil, nil
}

// control takes a control frame; false: the connection is over.
func (w *wsFramer) control(payload []byte) bool {
	f := w.f
	switch w.Kind {
	case websocket.Ping:
		f.ep.counters.KeepAlives.Add(1)
		if f.control(websocket.Pong, payload) == ErrFull {
			f.close(ErrFull)
			return false
		}
	case websocket.Pong:
		f.ws.unanswered = 0
	case websocket.Close:
		code, fine := websocket.CloseCode(payload)
		if !fine {
			code = websocket.CodeProtocol
		}
		f.goodbye(code)
		return false
	}
	return true
}
