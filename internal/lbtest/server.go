package lbtest

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/wyegate/wyegate/internal/sip"
)

// Server is an application server: a UA and a web server that both answer with its name.
type Server struct {
	*UA
	Web  netip.AddrPort
	Hits atomic.Int64 // web requests served

	web *http.Server
}

// NewServer starts both sides on ports of their own.
func NewServer(name string) (*Server, error) {
	s := &Server{}
	ua, err := NewUA(name, Answer)
	if err != nil {
		return nil, err
	}
	s.UA = ua
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		ua.Close()
		return nil, err
	}
	s.Web = ln.Addr().(*net.TCPAddr).AddrPort()
	s.web = &http.Server{Handler: http.HandlerFunc(s.page), ReadHeaderTimeout: 10 * time.Second}
	ua.running.Go(func() { _ = s.web.Serve(ln) })
	return s, nil
}

// Close ends both sides.
func (s *Server) Close() {
	s.web.Close()
	s.UA.Close()
}

// page answers with the server's name; ?session=1 begins a session, a body comes back.
func (s *Server) page(w http.ResponseWriter, r *http.Request) {
	s.Hits.Add(1)
	w.Header().Set("X-Server", s.Name)
	if r.URL.Query().Get("session") != "" {
		http.SetCookie(w, &http.Cookie{Name: "JSESSIONID", Value: "s" + s.Name, Path: "/"})
	}
	fmt.Fprintln(w, s.Name)
	_, _ = io.Copy(w, r.Body)
}

// Answer is the Handler of an ordinary server: it takes every call, answers what belongs to it, and keeps the dialogs.
// A user part that begins with "busy" is refused with 486, "ring" is left ringing until CANCEL.
func Answer(ua *UA, m *Message) {
	switch m.MethodName() {
	case "ACK":
	case "INVITE":
		ua.answerInvite(m)
	case "CANCEL":
		m.Reply(m.Response(200, "OK", ua.Name, "X-Server: "+ua.Name))
		if inv := ua.pendingInvite(m.CallIDText()); inv != nil {
			inv.Reply(inv.Response(487, "Request Terminated", ua.Name, "X-Server: "+ua.Name))
		}
	default:
		m.Reply(m.Response(200, "OK", ua.Name, "X-Server: "+ua.Name))
	}
}

func (ua *UA) answerInvite(m *Message) {
	u, _ := sip.ParseURI(m.Bytes(m.URI))
	switch {
	case m.Tag(sip.To) != nil: // re-INVITE
		m.Reply(m.Response(200, "OK", "", "X-Server: "+ua.Name, ua.ContactLine(m.Back)))
	case hasPrefix(u.User, "busy"):
		m.Reply(m.Response(486, "Busy Here", ua.Name, "X-Server: "+ua.Name))
	case hasPrefix(u.User, "ring"):
		m.Reply(m.Response(180, "Ringing", ua.Name, "X-Server: "+ua.Name))
	default:
		ua.Accept(m, m.Back)
	}
}

func hasPrefix(b []byte, p string) bool { return len(b) >= len(p) && string(b[:len(p)]) == p }

func (ua *UA) pendingInvite(callID string) *Message {
	ua.mu.Lock()
	defer ua.mu.Unlock()
	for i := len(ua.seen) - 1; i >= 0; i-- {
		if m := ua.seen[i]; m.CallIDText() == callID && m.MethodName() == "INVITE" {
			return m
		}
	}
	return nil
}
