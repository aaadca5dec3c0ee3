package sipproxy

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/wyegate/wyegate/internal/sip"
)

// selves answers "is this me?" (SR-2) for Route, Request-URI, Via and dial targets: every listener's socket, its
// advertised address, every alias and domain; a default port written or not, a host in any case, IPv6 in any spelling,
// any user part and any parameters. It is built with a generation and never written after.
type selves struct {
	addrs map[netip.AddrPort]struct{}
	names map[string][]uint16 // host in lower case → ports; portAny stands for every port
}

const (
	portAny     = 0
	portSIP     = 5060
	portSIPS    = 5061
	maxHostName = 255
)

func newSelves() *selves {
	return &selves{addrs: map[netip.AddrPort]struct{}{}, names: map[string][]uint16{}}
}

// add takes a host with its port; an address goes into the table of addresses, whatever its spelling.
func (s *selves) add(host string, port uint16) {
	if a, ok := sip.ParseHost([]byte(host)); ok {
		s.addAddr(netip.AddrPortFrom(a, port))
		return
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if !slices.Contains(s.names[host], port) {
		s.names[host] = append(s.names[host], port)
	}
}

func (s *selves) addAddr(a netip.AddrPort) {
	s.addrs[fold(a)] = struct{}{}
}

// addr says whether a socket address is one of ours.
func (s *selves) addr(a netip.AddrPort) bool {
	_, ok := s.addrs[fold(a)]
	return ok
}

// host says whether a host and a written port (nil: none) name us.
func (s *selves) host(host, port []byte, secure bool) bool {
	p, written := portOf(port, secure)
	if a, ok := sip.ParseHost(host); ok {
		_, own := s.addrs[netip.AddrPortFrom(a, p)]
		return own
	}
	var buf [maxHostName + 1]byte
	if len(host) > maxHostName {
		return false
	}
	name := sip.AppendLower(buf[:0], host)
	if n := len(name); n > 0 && name[n-1] == '.' {
		name = name[:n-1]
	}
	for _, own := range s.names[string(name)] {
		if own == portAny || own == p || !written {
			return true
		}
	}
	return false
}

// uri says whether a URI names us.
func (s *selves) uri(u *sip.URI) bool {
	return u.SIP() && s.host(u.Host, u.Port, secureURI(u))
}

// secureURI says whether the default port of a URI is that of TLS.
func secureURI(u *sip.URI) bool {
	if u.Secure() {
		return true
	}
	t, _ := u.Param("transport")
	return sip.EqualFold(t, "tls") || sip.EqualFold(t, "wss")
}

// portOf reads a port as written; without one it is the transport's default.
func portOf(b []byte, secure bool) (port uint16, written bool) {
	if len(b) > 0 {
		p, ok := sip.ParsePort(b)
		if ok {
			return p, true
		}
	}
	if secure {
		return portSIPS, false
	}
	return portSIP, false
}

// fold writes an IPv4-mapped address as IPv4 and drops the zone, so that two spellings of one address compare equal
// (SX-13).
func fold(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

// splitHostPort takes "host", "host:port", "[v6]" or "[v6]:port" apart; port 0 when none is written.
func splitHostPort(s string) (host string, port uint16, ok bool) {
	rest := ""
	switch {
	case strings.HasPrefix(s, "["):
		i := strings.IndexByte(s, ']')
		if i < 0 {
			return "", 0, false
		}
		host, rest = s[:i+1], s[i+1:]
	case strings.Count(s, ":") > 1:
		host = "[" + s + "]"
	default:
		host = s
		if i := strings.IndexByte(s, ':'); i >= 0 {
			host, rest = s[:i], s[i:]
		}
	}
	if rest != "" {
		p, ok := sip.ParsePort([]byte(strings.TrimPrefix(rest, ":")))
		if !ok || rest[0] != ':' {
			return "", 0, false
		}
		port = p
	}
	return host, port, host != ""
}
