package websocket

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"

	"github.com/wyegate/wyegate/internal/http1"
)

// Opening is what a client asks for in its handshake.
type Opening struct {
	Host     string // host and port of the server, for the field Host
	Path     string // request target
	Protocol string // the one subprotocol that is offered
}

// ErrRefused says that a server's answer does not open the WebSocket that was asked for.
var ErrRefused = errors.New("websocket: handshake refused")

var answerLimits = http1.Limits{Target: 8 << 10, Block: 16 << 10, Fields: 128}

// Open makes the handshake of a client (RFC 6455 section 4.1): it writes the request, reads the answer and checks it. early
// is what came right behind it. The caller bounds the time, by deadlines of c.
func Open(c io.ReadWriter, o *Opening) (early []byte, err error) {
	var nonce [16]byte
	_, _ = rand.Read(nonce[:]) // never fails
	key := base64.StdEncoding.AppendEncode(nil, nonce[:])
	if _, err := c.Write(o.appendRequest(nil, key)); err != nil {
		return nil, err
	}
	buf := make([]byte, 0, 1024)
	var head http1.Head
	for {
		n, err := head.ParseResponse(buf, &answerLimits)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrRefused, err)
		}
		if n > 0 {
			if err := o.check(&head, key); err != nil {
				return nil, err
			}
			return buf[n:], nil
		}
		if len(buf) == cap(buf) {
			buf = append(make([]byte, 0, 2*cap(buf)), buf...)
		}
		got, err := c.Read(buf[len(buf):cap(buf)])
		if buf = buf[:len(buf)+got]; err != nil && got == 0 {
			return nil, err
		}
	}
}

func (o *Opening) appendRequest(dst, key []byte) []byte {
	return fmt.Appendf(dst, "GET %s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: %s\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: %s\r\n\r\n", o.Path, o.Host, key, o.Protocol)
}

// check is RFC 6455 section 4.1, what a client must find in the answer. No extension was asked for, so none may be named.
func (o *Opening) check(h *http1.Head, key []byte) error {
	if h.Status != 101 {
		return fmt.Errorf("%w: status %d", ErrRefused, h.Status)
	}
	h.CutHopByHop() // what Connection says is read there
	if first, rest := http1.NextItem(h.Value(http1.Upgrade)); !h.WantsUpgrade() || !http1.EqualFold(first, "websocket") || len(rest) > 0 {
		return fmt.Errorf("%w: not upgraded", ErrRefused)
	}
	accepts, protocols := 0, 0
	for i := range h.Fields {
		name, value := h.NameOf(&h.Fields[i]), h.ValueOf(&h.Fields[i])
		switch {
		case http1.Equal(name, "sec-websocket-accept"):
			if accepts++; !bytes.Equal(value, AppendAccept(nil, key)) {
				return fmt.Errorf("%w: wrong Sec-WebSocket-Accept", ErrRefused)
			}
		case http1.Equal(name, "sec-websocket-protocol"):
			if protocols++; !http1.EqualFold(value, o.Protocol) {
				return fmt.Errorf("%w: subprotocol %q", ErrRefused, value)
			}
		case http1.Equal(name, "sec-websocket-extensions"):
			return fmt.Errorf("%w: an extension that was not asked for", ErrRefused)
		}
	}
	if accepts != 1 || protocols != 1 {
		return fmt.Errorf("%w: no Sec-WebSocket-Accept, or no subprotocol", ErrRefused)
	}
	return nil
}
