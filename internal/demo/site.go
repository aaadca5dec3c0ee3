package demo

import (
	"crypto/rand"
	"fmt"
	"net/http"
)

// sessionCookie is what a web application of the Java kind names its session.
const sessionCookie = "JSESSIONID"

// site is the web side of a server. A page of a room begins no session; the help pages do, so that the edge pins them.
type site struct{ name string }

func (s site) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", s.page(func(http.ResponseWriter, *http.Request) string { return "ok" }))
	mux.HandleFunc("/room", s.page(func(_ http.ResponseWriter, r *http.Request) string { return "room " + r.FormValue("conf") }))
	mux.HandleFunc("/room/ws", s.echo)
	mux.HandleFunc("/help", s.page(s.session))
	mux.HandleFunc("/", s.page(s.session))
	return mux
}

// page answers with the server's name in front of everything else.
func (s site) page(text func(http.ResponseWriter, *http.Request) string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(fieldServer, s.name)
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprintf(w, "%s on %s\n", text(w, r), s.name)
	}
}

// session begins one for whoever has none.
func (s site) session(w http.ResponseWriter, r *http.Request) string {
	if c, err := r.Cookie(sessionCookie); err == nil {
		return "session " + c.Value
	}
	c := &http.Cookie{Name: sessionCookie, Value: rand.Text(), Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode}
	http.SetCookie(w, c)
	return "new session " + c.Value
}
