package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"
)

// ErrNoCertificate says that a TLS peer showed no certificate although one is to be checked.
var ErrNoCertificate = errors.New("peer: no certificate")

// netConn is a Conn over TCP, or over TLS on TCP.
type netConn struct {
	net.Conn
	raw          syscall.RawConn // nil with TLS: its records are not written in parts
	tcp          *net.TCPConn    // nil where the socket is not TCP (tests)
	writeTimeout time.Duration
	bufs         net.Buffers
}

// NewConn makes a Conn of an open TCP or TLS connection. writeTimeout is how long a writer waits without any progress
// (diameter.md 2.8); 0: for ever.
func NewConn(c net.Conn, writeTimeout time.Duration) Conn {
	n := &netConn{Conn: c, writeTimeout: writeTimeout}
	under := c
	for {
		wrapped, ok := under.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		under = wrapped.NetConn()
	}
	n.tcp, _ = under.(*net.TCPConn)
	if _, isTLS := c.(*tls.Conn); isTLS {
		return &tlsConn{n}
	}
	if n.tcp != nil {
		n.raw, _ = n.tcp.SyscallConn() // without it, every write goes through the writer
	}
	return &plainConn{n}
}

func (c *netConn) Read(b []byte) (int, uint16, error) {
	n, err := c.Conn.Read(b)
	return n, 0, err
}

func (c *netConn) Writev(bufs [][]byte, _ uint16) (int64, error) {
	c.bufs = append(c.bufs[:0], bufs...)
	left := c.bufs // WriteTo takes off what is written
	var total int64
	for len(left) > 0 {
		if c.writeTimeout > 0 {
			if err := c.SetWriteDeadline(time.Now().Add(c.writeTimeout)); err != nil {
				return total, err
			}
		}
		n, err := left.WriteTo(c.Conn)
		total += n
		if err != nil && (n == 0 || !errors.Is(err, os.ErrDeadlineExceeded)) {
			return total, err
		}
	}
	return total, nil
}

func (c *netConn) Abort() error {
	if c.tcp != nil {
		_ = c.tcp.SetLinger(0) // a socket that refuses it is closed all the same
		return c.tcp.Close()
	}
	return c.Close()
}

func (c *netConn) Local() []netip.AddrPort  { return addrPorts(c.LocalAddr()) }
func (c *netConn) Remote() []netip.AddrPort { return addrPorts(c.RemoteAddr()) }

func addrPorts(a net.Addr) []netip.AddrPort {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return nil
	}
	p := t.AddrPort()
	return []netip.AddrPort{netip.AddrPortFrom(p.Addr().Unmap(), p.Port())}
}

// plainConn is TCP without TLS. It writes without waiting where the socket takes it.
type plainConn struct{ *netConn }

// TryWrite writes what the socket takes now.
func (c *plainConn) TryWrite(b []byte) (n int, err error) {
	if c.raw == nil {
		return 0, nil
	}
	err = c.raw.Write(func(fd uintptr) bool {
		var e error
		if n, e = syscall.Write(int(fd), b); e != nil {
			n = 0
			if e != syscall.EAGAIN && e != syscall.EINTR {
				err = e
			}
		}
		return true // never wait
	})
	return n, err
}

// tlsConn is TLS on TCP.
type tlsConn struct{ *netConn }

// VerifyHost says whether the certificate of the other end names host. The chain was checked in the handshake.
func (c *tlsConn) VerifyHost(host string) error {
	chain := c.Conn.(*tls.Conn).ConnectionState().PeerCertificates
	if len(chain) == 0 {
		return ErrNoCertificate
	}
	return chain[0].VerifyHostname(host)
}

// Target is where a TCPDialer connects: the addresses in order, or a name that is resolved at every dial.
type Target struct {
	Addrs []netip.AddrPort
	Name  string // used where Addrs is empty
	Port  uint16 // with Name
}

// TCPDialer opens TCP or TLS connections.
type TCPDialer struct {
	Target       Target
	Source       netip.Addr    // local address; zero: the kernel's choice
	TLS          *tls.Config   // nil: plain TCP
	WriteTimeout time.Duration // of the Conn
	// Resolve gives the addresses of a name; nil asks the system.
	Resolve func(ctx context.Context, name string) ([]netip.Addr, error)
}

// Dial tries the addresses in order and gives the first that answers. The error names the last one.
func (d *TCPDialer) Dial(ctx context.Context) (Conn, error) {
	addrs, err := d.addresses(ctx)
	if err != nil {
		return nil, err
	}
	for i, a := range addrs {
		c, dialErr := d.dialOne(ctx, a, len(addrs)-i)
		if dialErr == nil {
			return c, nil
		}
		err = dialErr
	}
	return nil, err
}

func (d *TCPDialer) addresses(ctx context.Context) ([]netip.AddrPort, error) {
	if len(d.Target.Addrs) > 0 {
		return d.Target.Addrs, nil
	}
	resolve := d.Resolve
	if resolve == nil {
		resolve = func(ctx context.Context, name string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", name)
		}
	}
	ips, err := resolve(ctx, d.Target.Name)
	if err != nil {
		return nil, fmt.Errorf("peer: resolve %s: %w", d.Target.Name, err)
	}
	out := make([]netip.AddrPort, len(ips))
	for i, ip := range ips {
		out[i] = netip.AddrPortFrom(ip.Unmap(), d.Target.Port)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("peer: %s has no address", d.Target.Name)
	}
	return out, nil
}

// dialOne gives one address its share of the time that is left.
func (d *TCPDialer) dialOne(ctx context.Context, a netip.AddrPort, left int) (Conn, error) {
	if at, ok := ctx.Deadline(); ok && left > 1 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(at)/time.Duration(left))
		defer cancel()
	}
	var dialer net.Dialer
	if d.Source.IsValid() {
		dialer.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(d.Source, 0))
	}
	c, err := dialer.DialContext(ctx, "tcp", a.String())
	if err != nil {
		return nil, fmt.Errorf("peer: %w", err)
	}
	if d.TLS == nil {
		return NewConn(c, d.WriteTimeout), nil
	}
	secure := tls.Client(c, d.TLS)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("peer: tls with %s: %w", a, err)
	}
	return NewConn(secure, d.WriteTimeout), nil
}
