package websocket

import (
	"bytes"
	"crypto/sha1"
	"encoding/base64"
	"strconv"

	"github.com/wyegate/wyegate/internal/http1"
)

// Rules say which opening handshakes are accepted (RFC 6455 section 4.2, sip-http.md 15.1).
type Rules struct {
	Path     string      // of the request target, without its query
	Protocol string      // the subprotocol that must be offered, in lower case
	Origins  []string    // who may open it from a browser: "https://phone.example.net"; "*" is everybody; empty: the same host
	Trust    http1.Trust // peers whose X-Forwarded-For is believed (sip-http.md 15.6)
}

// guid is what RFC 6455 section 1.3 appends to the key.
const guid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

// Accept judges a request and appends the answer to dst. The status is 101 when the connection has become a WebSocket
// with that answer; with any other the answer says what is wrong, and the connection is to be closed behind it.
func (r *Rules) Accept(dst []byte, h *http1.Head) (answer []byte, status int) {
	h.CutHopByHop() // what Connection says is read there
	f := readFields(h)
	switch {
	case string(path(h)) != r.Path:
		return refuse(dst, 404, "Not Found", ""), 404
	case string(h.Method.Of(h.Buf)) != "GET" || h.Minor == 0 || !f.bodyless:
		return refuse(dst, 400, "Bad Request", ""), 400
	case !h.WantsUpgrade() || !f.upgrade:
		return refuse(dst, 426, "Upgrade Required", "Upgrade: websocket\r\n"), 426
	case f.versions != 1 || f.version != "13":
		return refuse(dst, 426, "Upgrade Required", "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"), 426
	case f.keys != 1 || !validKey(f.key), !f.offers(r.Protocol):
		return refuse(dst, 400, "Bad Request", ""), 400
	case !r.admits(f.origin, h.Value(http1.Host)):
		return refuse(dst, 403, "Forbidden", ""), 403
	}
	dst = append(dst, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "...)
	dst = AppendAccept(dst, f.key)
	dst = append(dst, "\r\nSec-WebSocket-Protocol: "...)
	dst = append(dst, r.Protocol...)
	return append(dst, "\r\n\r\n"...), 101
}

// AppendAccept appends the answer to a key.
func AppendAccept(dst, key []byte) []byte {
	sum := sha1.Sum(append(append(make([]byte, 0, 64), key...), guid...))
	return base64.StdEncoding.AppendEncode(dst, sum[:])
}

func refuse(dst []byte, status int, reason, extra string) []byte {
	dst = append(dst, "HTTP/1.1 "...)
	dst = strconv.AppendInt(dst, int64(status), 10)
	dst = append(append(append(dst, ' '), reason...), "\r\n"...)
	dst = append(dst, extra...)
	return append(dst, "Content-Length: 0\r\nConnection: close\r\n\r\n"...)
}

// Asks says whether a request wants a WebSocket at that path, whether or not it will get one.
func (r *Rules) Asks(h *http1.Head) bool {
	first, _ := http1.NextItem(h.Value(http1.Upgrade))
	return string(path(h)) == r.Path && http1.EqualFold(first, "websocket")
}

func path(h *http1.Head) []byte {
	t := h.Target.Of(h.Buf)
	if i := bytes.IndexByte(t, '?'); i >= 0 {
		t = t[:i]
	}
	return t
}

// fields are what the handshake says in its fields. Values are spans of the head.
type fields struct {
	upgrade, bodyless bool
	versions, keys    int
	version           string
	key, origin       []byte
	protocols         [][]byte
}

func readFields(h *http1.Head) fields {
	first, _ := http1.NextItem(h.Value(http1.Upgrade))
	f := fields{upgrade: http1.EqualFold(first, "websocket")}
	framing, err := h.RequestFraming()
	f.bodyless = err == nil && framing.Kind == http1.NoBody
	for i := range h.Fields {
		name, value := h.NameOf(&h.Fields[i]), h.ValueOf(&h.Fields[i])
		switch {
		case http1.Equal(name, "sec-websocket-key"):
			f.key = value
			f.keys++
		case http1.Equal(name, "sec-websocket-version"):
			f.version = string(value)
			f.versions++
		case http1.Equal(name, "sec-websocket-protocol"):
			f.protocols = append(f.protocols, value)
		case http1.Equal(name, "origin"):
			f.origin = value
		}
	}
	return f
}

// offers says whether the wanted protocol is among those the client named.
func (f *fields) offers(want string) bool {
	for _, list := range f.protocols {
		for len(list) > 0 {
			var item []byte
			if item, list = http1.NextItem(list); http1.EqualFold(item, want) {
				return true
			}
		}
	}
	return false
}

// validKey says whether a key is 16 octets in base64.
func validKey(key []byte) bool {
	var raw [18]byte
	if len(key) != 24 {
		return false
	}
	n, err := base64.StdEncoding.Decode(raw[:], key)
	return err == nil && n == 16
}

// admits judges the Origin that a browser sends. Programs that are no browsers send none, and could write what they like.
func (r *Rules) admits(origin, host []byte) bool {
	if len(origin) == 0 {
		return true
	}
	if len(r.Origins) == 0 {
		scheme, authority, found := bytes.Cut(origin, []byte("://"))
		return found && bytes.EqualFold(withoutPort(authority, scheme), withoutPort(host, scheme))
	}
	for _, o := range r.Origins {
		if o == "*" || bytes.EqualFold(origin, []byte(o)) {
			return true
		}
	}
	return false
}

// withoutPort takes the default port of a scheme off.
func withoutPort(authority, scheme []byte) []byte {
	port := ":80"
	if bytes.EqualFold(scheme, []byte("https")) {
		port = ":443"
	}
	return bytes.TrimSuffix(authority, []byte(port))
}
