package httpproxy

import (
	"context"
	"net"
	"net/netip"
	"time"

	"github.com/wyegate/wyegate/internal/http1"
	"github.com/wyegate/wyegate/internal/obs"
	"github.com/wyegate/wyegate/internal/websocket"
	"github.com/wyegate/wyegate/proxy"
	"github.com/wyegate/wyegate/routing"
)

// Generation is what one configuration says to the HTTP side. It is never written after it was built.
type Generation struct {
	Number    uint64
	Secrets   *proxy.Secrets
	Listeners map[string]*Listener
	Limits    Limits
	Numbers   Numbers // who waits for ENUM; nil: no number is known
}

// Numbers waits for what a rule must know about a number (dcr.md section 14). The engine adapts the resolver.
type Numbers interface {
	// Await returns true when the resolver of the target's rules knows number (digits without the plus), failures
	// included; false at until, or at once when too many wait.
	Await(t *proxy.Target, number []byte, until time.Time) bool
}

// Limits are limits.http and the fixed ones of sip-http.md section 19. A zero field takes its default.
type Limits struct {
	HeaderTimeout   time.Duration // 10 s: whole head, from its first octet
	BodyIdle        time.Duration // 30 s: without progress of a body, both ways
	IdleTimeout     time.Duration // 75 s: between two requests
	MaxTarget       int           // 8 KiB: 414
	MaxHeader       int           // 16 KiB: 431
	MaxFields       int           // 128: 431
	MaxTrailers     int           // 8 KiB
	MaxBody         int64         // 0: no limit; else 413
	ResponseTimeout time.Duration // 60 s to the head of the response: 504
	ExpectWait      time.Duration // 1 s: then we send 100 ourselves
	TunnelIdle      time.Duration // 1 h
	Linger          time.Duration // 2 s: how long a closed connection is still read
}

// WithDefaults fills in what is zero.
func (l Limits) WithDefaults() Limits {
	setDuration(&l.HeaderTimeout, 10*time.Second)
	setDuration(&l.BodyIdle, 30*time.Second)
	setDuration(&l.IdleTimeout, 75*time.Second)
	setDuration(&l.ResponseTimeout, 60*time.Second)
	setDuration(&l.ExpectWait, time.Second)
	setDuration(&l.TunnelIdle, time.Hour)
	setDuration(&l.Linger, 2*time.Second)
	setInt(&l.MaxTarget, 8<<10)
	setInt(&l.MaxHeader, 16<<10)
	setInt(&l.MaxFields, 128)
	setInt(&l.MaxTrailers, 8<<10)
	return l
}

func setDuration(d *time.Duration, to time.Duration) {
	if *d == 0 {
		*d = to
	}
}

func setInt(n *int, to int) {
	if *n == 0 {
		*n = to
	}
}

// Listener is what a generation says about one HTTP listener.
type Listener struct {
	Name string
	TLS  bool // clients speak TLS to it
	// Covers says whether a request for host belongs on a connection whose client asked for another name (sip-http.md
	// 13.2); nil: always.
	Covers      func(asked, host string) bool
	Matcher     *proxy.Matcher
	Apps        []*App // by proxy.Target.Number; nil where a target is not behind this listener
	DefaultHost string // for HTTP/1.0 requests without Host; empty: 400
	// MaxAge is the age from which on a connection ends behind the next answer, so that clients spread again (sip-http.md
	// 11.5); 0: never. Each connection's differs by up to the fraction AgeJitter of it.
	MaxAge    time.Duration
	AgeJitter float64

	WebSocket *WebSocket // SIP over WebSocket on this listener; nil: not here

	Obs  *obs.HTTPListener // may be nil
	None *obs.HTTPTarget   // requests that no application takes; may be nil
}

// WebSocket is how connections leave HTTP for SIP (RFC 7118). Serve has the connection until it ends; source is the
// client, which a trusted hop may have named, and early what came right behind the handshake.
type WebSocket struct {
	Rules websocket.Rules
	Serve func(ctx context.Context, c net.Conn, source netip.Addr, early []byte)
}

// App is one application behind one listener.
type App struct {
	Target  *proxy.Target
	Service *Service
	Connect *Connect

	Obs     *obs.HTTPTarget        // may be nil
	Keys    *obs.Target            // may be nil
	Servers map[uint32]*obs.Server // by server tag; may be nil
	Peers   map[uint32]string      // by server tag: what a server that is reached over TLS is checked against
}

// Service is what services[].http and trust_headers_from say.
type Service struct {
	Name           string
	Via            string   // pseudonym; empty: no Via
	Upgrade        []string // protocols in lower case
	LenientFraming bool
	TrustFrom      http1.Trust
}

// Connect is pools[].connect.
type Connect struct {
	Timeout time.Duration // of one connect: 2 s
	Tries   int           // servers one request is offered to: 3
	Idle    time.Duration // of a pooled connection: 50 s
	Source  []netip.Addr  // own addresses, one per family

	// Announce appends what a new connection begins with, for a client and the address of ours that it came to: a PROXY
	// header. A connection then carries the requests of one client's connection and no others (sip-http.md section 14).
	// nil: nothing is announced.
	Announce func(dst []byte, client, to netip.AddrPort) []byte
}

// WithDefaults fills in what is zero.
func (c Connect) WithDefaults() Connect {
	setDuration(&c.Timeout, 2*time.Second)
	setDuration(&c.Idle, 50*time.Second)
	setInt(&c.Tries, 3)
	return c
}

// takesHTTP says which kinds of application HTTP requests may find.
func takesHTTP(t *proxy.Target) bool { return t.Kind != routing.SIPOnly }

// Match finds the application of an admitted request; nil when there is none (operations.md 3.3).
func (l *Listener) Match(v *View) *App {
	t := l.Matcher.Match(v.Host, v.Path, takesHTTP)
	if t == nil || t.Number >= len(l.Apps) {
		return nil
	}
	return l.Apps[t.Number]
}
