package listen

import (
	"io"
	"net"
	"net/netip"
	"time"
)

// headerTimeout is how long a peer may take for the whole PROXY header (sip-http.md section 14).
const headerTimeout = 3 * time.Second

// Conn is a connection whose addresses a PROXY header carried. RemoteAddr and LocalAddr give what was carried; the
// connection inside, with the real socket, is NetConn: splice, flow tokens and the self test use that one.
type Conn struct {
	net.Conn
	source, destination netip.AddrPort
}

// RemoteAddr is the client's address as the proxy saw it.
func (c *Conn) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.source) }

// LocalAddr is the address that the client has connected to.
func (c *Conn) LocalAddr() net.Addr { return net.TCPAddrFromAddrPort(c.destination) }

// NetConn is the real connection. No octet behind the header was read from it.
func (c *Conn) NetConn() net.Conn { return c.Conn }

// ReadProxyHeader reads exactly one PROXY header, version 1 or 2, from a connection, and nothing behind it. The
// connection comes back as it is when the header carries no addresses (LOCAL, UNKNOWN, another family). The error is
// ErrProxyHeader or what the connection said; the connection is not closed.
func ReadProxyHeader(c net.Conn, within time.Duration) (net.Conn, error) {
	if err := c.SetReadDeadline(time.Now().Add(within)); err != nil {
		return nil, err
	}
	h, err := readHeader(c)
	if err != nil {
		return nil, err
	}
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		return nil, err
	}
	if !h.Source.IsValid() {
		return c, nil
	}
	return &Conn{Conn: c, source: h.Source, destination: h.Destination}, nil
}

// readHeader asks for as many octets as the header must still have, never for more, so that nothing has to be put back.
func readHeader(r io.Reader) (ProxyHeader, error) {
	var small [v1Most]byte // most headers, both versions; TLVs need more
	buf, have := small[:], 0
	for {
		h, need, err := ParseProxyHeader(buf[:have])
		if err != nil || need == 0 {
			return h, err
		}
		if have+need > len(buf) {
			buf = append(buf[:have], make([]byte, need)...) // bounded: ParseProxyHeader refuses lengths above 4 KiB
		}
		n, err := io.ReadFull(r, buf[have:have+need])
		if err == io.EOF && have > 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return ProxyHeader{}, err
		}
		have += n
	}
}
