package httpproxy

import "github.com/wyegate/wyegate/internal/http1"

// AppendRequestFields writes the field lines that the server gets: what no cut took off, as it was received, and ours.
// Framing and connection fields are the front's. It may be called again for another attempt: what it marks it marks
// once, and a second call gives the same but for the token of tell_server.
func (d *Decider) AppendRequestFields(dst []byte, v *View, c *Choice) []byte {
	if v.NewHost {
		dst = append(append(append(dst, "Host: "...), v.Authority...), "\r\n"...)
	}
	left, lowered := v.lowerMaxForwards()
	if v.Trusted {
		v.continued()
	}
	dst = v.Head.AppendFields(dst)
	if lowered {
		dst = appendMaxForwards(dst, left)
	}
	dst = appendVia(dst, v.HTTP2, v.Head.Minor, c.App.Service.Via)
	dst = v.appendForwarding(dst)
	return d.appendTell(dst, c)
}

// appendTell writes key and token for the server where the application asks for them (dcr.md 5.6).
func (d *Decider) appendTell(dst []byte, c *Choice) []byte {
	t := c.App.Target
	if t.TellKey != "" && c.Key != nil {
		dst = append(append(dst, t.TellKey...), ": "...)
		dst = append(appendParam(dst, c.Key), "\r\n"...)
	}
	if t.TellToken != "" {
		dst = append(append(dst, t.TellToken...), ": "...)
		dst = append(d.appendToken(dst, c), "\r\n"...)
	}
	return dst
}

// appendParam escapes what is no paramchar of RFC 3261 25.1.
func appendParam(dst, key []byte) []byte {
	const hex = "0123456789ABCDEF"
	for _, c := range key {
		if paramOctet[c] {
			dst = append(dst, c)
		} else {
			dst = append(dst, '%', hex[c>>4], hex[c&15])
		}
	}
	return dst
}

var paramOctet = func() (t [256]bool) {
	for _, c := range []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.!~*'()[]/:&+$") {
		t[c] = true
	}
	return t
}()

// AppendResponseFields writes the field lines that the client gets from a final response: hop-by-hop ones must have been
// cut. Our cookie is a line of its own.
func (d *Decider) AppendResponseFields(dst []byte, v *View, c *Choice, resp *http1.Head) []byte {
	dst = resp.AppendFields(dst)
	dst = appendVia(dst, c.HTTP2, resp.Minor, c.App.Service.Via)
	if c.wantsCookie(resp) {
		dst = d.appendCookie(dst, v, c)
	}
	return dst
}
