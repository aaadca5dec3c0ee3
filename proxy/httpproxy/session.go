package httpproxy

import (
	"bytes"
	"errors"

	"github.com/wyegate/wyegate/internal/http1"
	"github.com/wyegate/wyegate/proxy"
	"github.com/wyegate/wyegate/routing"
)

// session is what a request says of the server it belongs to.
type session struct {
	token  proxy.Token
	sealed bool   // token is a valid one of ours for this application
	server uint32 // tag of the server that token or route names; 0: none
	from   string // carrier, for explain
}

const (
	sessionCookie = "JSESSIONID"
	sessionParam  = "jsessionid="
)

// readSession looks for a server in the order of HS-1: own cookie, own path parameter, route behind the session id in
// the cookie, then in the path. Cookie and path go on unchanged.
func (d *Decider) readSession(g *Generation, app *App, v *View) (s session) {
	t := app.Target
	var route *routing.Member
	if v.Head.Count(http1.Cookie) > 0 {
		for i := range v.Head.Fields {
			f := &v.Head.Fields[i]
			if f.ID != http1.Cookie || f.Twin {
				continue
			}
			for rest := v.Head.ValueOf(f); len(rest) > 0; {
				var name, value []byte
				name, value, rest = http1.NextCookie(rest)
				switch {
				case string(name) == t.Tokens.HTTPCookie:
					if !s.sealed && d.readToken(g, app, value, &s) {
						s.from = "cookie"
					}
				case string(name) == sessionCookie && route == nil:
					route = routeOf(t.Pool, value)
				}
			}
		}
	}
	if s.sealed {
		return s
	}
	if bytes.IndexByte(v.Path, ';') >= 0 {
		d.readPath(g, app, v.Path, &s, &route)
	}
	if !s.sealed && route != nil {
		s.server, s.from = route.Tag, "session id"
	}
	return s
}

// readPath looks through the parameters of all segments. Names of our own have no case.
func (d *Decider) readPath(g *Generation, app *App, path []byte, s *session, route **routing.Member) {
	for {
		i := bytes.IndexByte(path, ';')
		if i < 0 {
			return
		}
		path = path[i+1:]
		param := path
		if end := bytes.IndexAny(path, ";/"); end >= 0 {
			param = path[:end]
		}
		if eq := bytes.IndexByte(param, '='); eq >= 0 && sameName(param[:eq], app.Target.Tokens.HTTPPathParameter) {
			if d.readToken(g, app, param[eq+1:], s) {
				s.from = "path parameter"
				return
			}
		} else if *route == nil && bytes.HasPrefix(param, []byte(sessionParam)) {
			*route = routeOf(app.Target.Pool, param[len(sessionParam):])
		}
	}
}

// readToken opens a token made for HTTP, or one of a Record-Route that an application handed out (6.3). What is not
// valid, or was made for another application, is no token and is counted.
func (d *Decider) readToken(g *Generation, app *App, text []byte, s *session) bool {
	if len(text) == 0 {
		return false
	}
	err := d.codec.ReadToken(text, g.Secrets, proxy.UseHTTP, &s.token)
	if err == proxy.ErrTokenMAC && d.codec.ReadToken(text, g.Secrets, proxy.UseRecordRoute, &s.token) == nil {
		err = nil
	}
	switch {
	case err != nil:
	case !s.token.HasServer:
		err = proxy.ErrTokenMalformed
	case s.token.App != app.Target.Tag:
		err = errOtherApplication
	default:
		s.sealed, s.server = true, s.token.Server
		return true
	}
	app.refusedToken(err)
	return false
}

var errOtherApplication = errors.New("application")

func (app *App) refusedToken(err error) {
	if app.Keys == nil {
		return
	}
	at := 0
	switch err {
	case proxy.ErrTokenVersion:
		at = 1
	case proxy.ErrTokenSecret:
		at = 2
	case proxy.ErrTokenMAC:
		at = 3
	case errOtherApplication:
		at = 4
	}
	if c := app.Keys.TokensRefused[at]; c != nil {
		c.Inc()
	}
}

// routeOf finds the server named behind the last dot of a session id; nil when there is none of that name.
func routeOf(p *routing.Pool, id []byte) *routing.Member {
	dot := bytes.LastIndexByte(id, '.')
	if dot < 0 || dot == len(id)-1 {
		return nil
	}
	t := p.Table()
	if t == nil {
		return nil
	}
	name := id[dot+1:]
	for i := range t.Members {
		if string(name) == t.Members[i].Name {
			return &t.Members[i]
		}
	}
	return nil
}
