package listen

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/wyegate/wyegate/internal/limit"
)

// udpBuffer is the kernel's buffer of a UDP socket, each way, where the listener says nothing (sip-http.md section 19).
const udpBuffer = 4 << 20

func bind(w Want) (*Socket, error) {
	if w.Network == TCP {
		return bindTCP(w)
	}
	return bindUDP(w)
}

func bindTCP(w Want) (*Socket, error) {
	lc := net.ListenConfig{Control: control(func(fd int) error { return setBuffers(fd, w.Buffer) })}
	l, err := lc.Listen(context.Background(), family("tcp", w.Addr), fold(w.Addr).String())
	if err != nil {
		return nil, err
	}
	tcp := l.(*net.TCPListener) // what Listen gives for tcp4 and tcp6
	return &Socket{Network: TCP, Addr: fold(tcp.Addr().(*net.TCPAddr).AddrPort()), tcp: tcp, caps: limit.NewCaps(0, 0, limit.Exempt{})}, nil
}

// bindUDP opens the first socket alone, so that a port which somebody else has, SO_REUSEPORT or not, is an error and
// not a shared port; then it lets the others in.
func bindUDP(w Want) (*Socket, error) {
	n, buffer := w.Sockets, w.Buffer
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	if buffer <= 0 {
		buffer = udpBuffer
	}
	s := &Socket{Network: UDP, Addr: fold(w.Addr)}
	for i := range n {
		lc := net.ListenConfig{Control: control(func(fd int) error {
			if i == 0 {
				return setBuffers(fd, buffer)
			}
			return errors.Join(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1), setBuffers(fd, buffer))
		})}
		pc, err := lc.ListenPacket(context.Background(), family("udp", s.Addr), s.Addr.String())
		if err != nil {
			s.close()
			return nil, err
		}
		c := pc.(*net.UDPConn) // what ListenPacket gives for udp4 and udp6
		s.UDP = append(s.UDP, c)
		if i > 0 {
			continue
		}
		s.Addr = fold(c.LocalAddr().(*net.UDPAddr).AddrPort())
		if err := share(c); err != nil {
			s.close()
			return nil, err
		}
	}
	return s, nil
}

// share sets SO_REUSEPORT on a socket that is bound already: from now on others of ours may join it.
func share(c *net.UDPConn) error {
	rc, err := c.SyscallConn()
	if err != nil {
		return err
	}
	return control(func(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) })("", "", rc)
}

// setBuffers asks with force, which needs CAP_NET_ADMIN, and else takes what net.core allows: doctor tells the operator,
// a smaller buffer is no reason not to start.
func setBuffers(fd, octets int) error {
	if octets <= 0 {
		return nil
	}
	for _, opt := range [...][2]int{{unix.SO_RCVBUFFORCE, unix.SO_RCVBUF}, {unix.SO_SNDBUFFORCE, unix.SO_SNDBUF}} {
		if unix.SetsockoptInt(fd, unix.SOL_SOCKET, opt[0], octets) == nil {
			continue
		}
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, opt[1], octets); err != nil {
			return fmt.Errorf("socket buffer of %d octets: %w", octets, err)
		}
	}
	return nil
}

// control adapts a function of a descriptor to net.ListenConfig.
func control(f func(fd int) error) func(network, address string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		var inner error
		if err := c.Control(func(fd uintptr) { inner = f(int(fd)) }); err != nil {
			return err
		}
		return inner
	}
}

// family names the network of an address as package net does; udp6 and tcp6 carry IPv6 alone.
func family(network string, a netip.AddrPort) string {
	if a.Addr().Unmap().Is4() {
		return network + "4"
	}
	return network + "6"
}
