package demo

import (
	"fmt"
	"net"
	"strconv"
)

// host is the only address the demo uses.
const host = "127.0.0.1"

// Ports are the ports the demo would like to have; 0, or one that is in use, is replaced by a free one.
type Ports struct {
	SIP     int // UDP and TCP
	HTTP    int
	Servers int // first of eight: SIP and HTTP of each application server
}

// DefaultPorts are those of operations.md 2.1. The servers' lie below the range from which kernels take the ports of
// outgoing connections, so that nobody takes one while its server is stopped.
var DefaultPorts = Ports{SIP: 15060, HTTP: 18080, Servers: 15101}

// tries bounds the search for a port that is free for UDP and for TCP.
const tries = 64

// finder finds free ports and gives none twice: a port that was found is bound only later.
type finder map[int]bool

// free gives want if it is free, else another one. udp says that the port must be free for datagrams, too.
func (f finder) free(want int, udp bool) (int, error) {
	var last error
	for range tries {
		port, err := probe(want, udp)
		if err == nil && !f[port] {
			f[port] = true
			return port, nil
		}
		last, want = err, 0
	}
	return 0, fmt.Errorf("no free port on %s: %w", host, last)
}

// probe binds a port and lets it go.
func probe(port int, udp bool) (int, error) {
	l, err := net.Listen("tcp", address(port))
	if err != nil {
		return 0, err
	}
	defer l.Close()
	port = l.Addr().(*net.TCPAddr).Port
	if !udp {
		return port, nil
	}
	c, err := net.ListenPacket("udp", address(port))
	if err != nil {
		return 0, err
	}
	return port, c.Close()
}

func address(port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }
