package config

import (
	"net/netip"
	"strconv"
	"strings"
)

// Size is a number of octets.
type Size int64

// Percent is a share: 0.25 stands for 25%.
type Percent float64

// Share is a percentage, or the word none, which is 0.
type Share float64

// FileMode is a file mode as chmod takes it: 0o660.
type FileMode uint32

// Path is a file or folder that the configuration names.
type Path struct {
	Text string // as written; relative to the main file's folder when it is not absolute
	Abs  string // from the root of the file system that the configuration was read from: "/etc/wyegate/rules.xml"
}

// IsZero says that no path was given.
func (p Path) IsZero() bool { return p.Abs == "" }

// Bind is where a listener listens.
type Bind struct {
	Addr netip.Addr // the zero Addr: every address of this machine
	Port uint16     // 0: the kernel chooses
}

// String is the form that net.Listen takes: ":5060", "192.0.2.1:5060", "[2001:db8::1]:5060".
func (b Bind) String() string {
	if !b.Addr.IsValid() {
		return ":" + strconv.Itoa(int(b.Port))
	}
	return netip.AddrPortFrom(b.Addr, b.Port).String()
}

// HostPort is an address with a port, or a name that DNS resolves to addresses.
type HostPort struct {
	Host string     // as written, without brackets
	Addr netip.Addr // valid when Host is an address
	Port uint16
}

// IsZero says that no address was given.
func (h HostPort) IsZero() bool { return h.Host == "" }

// String is host and port, an IPv6 address in brackets.
func (h HostPort) String() string {
	if h.IsZero() {
		return ""
	}
	if strings.Contains(h.Host, ":") {
		return "[" + h.Host + "]:" + strconv.Itoa(int(h.Port))
	}
	return h.Host + ":" + strconv.Itoa(int(h.Port))
}

// StatusRange is one status, or a range of them.
type StatusRange struct {
	From, To int
}

// Has says whether the range holds a status.
func (r StatusRange) Has(status int) bool { return r.From <= status && status <= r.To }

// String is the form of the file: "404", "200-399".
func (r StatusRange) String() string {
	if r.From == r.To {
		return strconv.Itoa(r.From)
	}
	return strconv.Itoa(r.From) + "-" + strconv.Itoa(r.To)
}
