package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"
)

// echo is the websocket of a room: what is said comes back, until the other side goes.
func (s site) echo(w http.ResponseWriter, r *http.Request) {
	conn, _, _, err := ws.HTTPUpgrader{Header: http.Header{fieldServer: {s.name}}}.Upgrade(r, w)
	if err != nil {
		return // the upgrader has answered
	}
	defer conn.Close()
	for {
		text, err := wsutil.ReadClientText(conn)
		if err != nil || wsutil.WriteServerText(conn, text) != nil {
			return
		}
	}
}

// socket is a websocket through the edge.
type socket struct {
	conn   net.Conn
	server string
	said   int
}

var errEcho = errors.New("the echo is another text")

// openSocket upgrades a connection for a room.
func (b *browsers) openSocket(ctx context.Context, room string) (*socket, error) {
	s := &socket{}
	d := ws.Dialer{
		Timeout: phoneWait,
		NetDial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", b.edge)
		},
		OnHeader: func(key, value []byte) error {
			if http.CanonicalHeaderKey(string(key)) == fieldServer {
				s.server = string(value)
			}
			return nil
		},
	}
	conn, early, _, err := d.Dial(ctx, "ws://"+webDomain+"/room/ws?conf="+room)
	if err != nil {
		return nil, fmt.Errorf("websocket: %w", err)
	}
	if early != nil {
		ws.PutReader(early) // a server of the demo says nothing first
	}
	s.conn = conn
	return s, nil
}

// say sends a text and waits for its echo.
func (s *socket) say() error {
	s.said++
	text := fmt.Sprintf("message %d", s.said)
	if err := s.conn.SetDeadline(time.Now().Add(phoneWait)); err != nil {
		return err
	}
	if err := wsutil.WriteClientText(s.conn, []byte(text)); err != nil {
		return fmt.Errorf("websocket on %s: %w", s.server, err)
	}
	got, err := wsutil.ReadServerText(s.conn)
	if err == nil && string(got) != text {
		err = errEcho
	}
	if err != nil {
		return fmt.Errorf("websocket on %s: %w", s.server, err)
	}
	return nil
}

// close says goodbye and closes.
func (s *socket) close() {
	_ = ws.WriteFrame(s.conn, ws.MaskFrame(ws.NewCloseFrame(ws.NewCloseFrameBody(ws.StatusNormalClosure, "")))) // politeness
	s.conn.Close()
}
