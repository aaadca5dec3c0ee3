package config

import (
	"net/netip"
	"reflect"
	"strconv"
	"strings"
)

// parseBind takes "ADDRESS:PORT", or ":PORT" for every address.
func parseBind(text string, _ *field, v reflect.Value) *fault {
	host, port, ok := splitHostPort(text)
	if !ok {
		return expected("WG109", "an address and a port such as 192.0.2.1:5060 or :5060", text)
	}
	b := Bind{Port: port}
	if host != "" && host != "*" {
		addr, err := netip.ParseAddr(host)
		if err != nil {
			return expected("WG109", "an address of this machine, not a name, and a port", text)
		}
		b.Addr = addr.Unmap()
	}
	v.Set(reflect.ValueOf(b))
	return nil
}

// parseHostPort takes "HOST:PORT", where HOST is an address or a name; with form local an address only.
func parseHostPort(text string, f *field, v reflect.Value) *fault {
	if text == "" && f.optional() {
		v.Set(reflect.ValueOf(HostPort{}))
		return nil
	}
	what := "an address or name with a port from 1 to 65535"
	if f.form == "local" {
		what = "an address with a port"
	}
	host, port, ok := splitHostPort(text)
	if !ok || port == 0 && f.form != "local" {
		return expected("WG109", what, text)
	}
	addr, err := netip.ParseAddr(host)
	switch {
	case err == nil && addr.Zone() == "":
		addr = addr.Unmap()
		host = addr.String()
	case strings.Contains(text, "[") || !isHostName(host) || looksLikeAddress(host) || f.form == "local":
		return expected("WG109", what, text)
	}
	v.Set(reflect.ValueOf(HostPort{Host: host, Addr: addr, Port: port}))
	return nil
}

// splitHostPort cuts at the last colon. An IPv6 address stands in brackets.
func splitHostPort(text string) (host string, port uint16, ok bool) {
	i := strings.LastIndexByte(text, ':')
	if i < 0 {
		return "", 0, false
	}
	n, err := strconv.ParseUint(text[i+1:], 10, 16)
	if err != nil {
		return "", 0, false
	}
	host = text[:i]
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner, closed := strings.CutSuffix(inner, "]")
		if !closed || !strings.Contains(inner, ":") {
			return "", 0, false
		}
		return inner, uint16(n), true
	}
	return host, uint16(n), !strings.Contains(host, ":")
}

// looksLikeAddress says that a name ends in a number: a mistyped IPv4 address such as 10.0.1.256.
func looksLikeAddress(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	_, err := strconv.ParseUint(last, 10, 64)
	return err == nil
}

// isHostName follows RFC 1123 2.1, and takes underscores, which networks have in names of machines.
func isHostName(name string) bool {
	name = strings.TrimSuffix(name, ".")
	if name == "" || len(name) > 253 {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for i := range len(label) {
			if !isAlnum(label[i]) && label[i] != '-' && label[i] != '_' {
				return false
			}
		}
	}
	return true
}

func isAlnum(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func parseAddr(text string, _ *field, v reflect.Value) *fault {
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return expected("WG109", "an address", text)
	}
	v.Set(reflect.ValueOf(addr.Unmap()))
	return nil
}

// parsePrefix takes a prefix, or an address for a prefix of its whole length.
func parsePrefix(text string, _ *field, v reflect.Value) *fault {
	if addr, err := netip.ParseAddr(text); err == nil && addr.Zone() == "" {
		addr = addr.Unmap()
		v.Set(reflect.ValueOf(netip.PrefixFrom(addr, addr.BitLen())))
		return nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return expected("WG109", "a network such as 10.0.0.0/8", text)
	}
	if p != p.Masked() {
		bad := expected("WG109", "a network without bits behind its length", text)
		bad.suggestion = p.Masked().String()
		return bad
	}
	v.Set(reflect.ValueOf(p))
	return nil
}
