package websocket

import (
	"io"
	"math/rand/v2"
)

// Stream is a client's WebSocket as a stream, for exchanges of a few messages: each Write is one text message, and Read
// gives what messages hold, one behind the other. Pings are answered while somebody reads. It belongs to one goroutine.
type Stream struct {
	c    io.ReadWriter
	r    Reader
	rest []byte // of the message at hand
}

// NewStream takes a connection whose handshake Open has made, with what came behind it. No message may be larger than limit.
func NewStream(c io.ReadWriter, early []byte, limit int) *Stream {
	s := &Stream{c: c, r: Reader{Max: limit, Unmasked: true}}
	s.r.Feed(early)
	return s
}

// RandomMask gives a masking key.
func RandomMask() Mask {
	v := rand.Uint32()
	return &[4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}
}

func (s *Stream) Write(b []byte) (int, error) {
	if _, err := s.c.Write(AppendFrame(nil, Text, b, RandomMask())); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (s *Stream) Read(b []byte) (int, error) {
	for len(s.rest) == 0 {
		p, msg := s.r.Next()
		switch {
		case p == Message:
			s.rest = msg
		case p == Broken, p == Control && s.r.Kind == Close:
			return 0, io.EOF
		case p == Control && s.r.Kind == Ping:
			if _, err := s.c.Write(AppendFrame(nil, Pong, msg, RandomMask())); err != nil {
				return 0, err
			}
		case p == More:
			n, err := s.c.Read(s.r.Room(2048))
			if s.r.Filled(n); err != nil && n == 0 {
				return 0, err
			}
		}
	}
	n := copy(b, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}
