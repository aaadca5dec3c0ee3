package http1

import (
	"bytes"
	"net/netip"
)

// Trust are the networks whose hosts may tell who the client is.
type Trust []netip.Prefix

// Has says whether a host is one of them.
func (t Trust) Has(a netip.Addr) bool {
	a = a.Unmap()
	for _, p := range t {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// Client gives the client's address: the peer's, or, where the peer is trusted, what X-Forwarded-For, else Forwarded, says.
// They are read from the right through hops that are trusted. The walk stops at the first address that is not, or at what
// is no address: nothing to the left of that can be believed (HH-3).
func (h *Head) Client(peer netip.Addr, trust Trust) netip.Addr {
	client := peer.Unmap()
	if !trust.Has(client) {
		return client
	}
	id := XForwardedFor
	if h.Count(id) == 0 {
		id = Forwarded
	}
	for i := len(h.Fields) - 1; i >= 0; i-- {
		if h.Fields[i].ID != id || h.Fields[i].Cut != Keep {
			continue
		}
		for rest := h.ValueOf(&h.Fields[i]); len(rest) > 0; {
			item := rest
			if c := bytes.LastIndexByte(rest, ','); c >= 0 {
				item, rest = rest[c+1:], rest[:c]
			} else {
				rest = nil
			}
			a, ok := hopAddress(bytes.TrimSpace(item), id == Forwarded)
			if !ok {
				return client
			}
			if client = a; !trust.Has(a) {
				return client
			}
		}
	}
	return client
}

// hopAddress reads one hop: an address with or without port and brackets, for Forwarded the value of for=.
func hopAddress(item []byte, forwarded bool) (netip.Addr, bool) {
	if forwarded {
		if item = forValue(item); item == nil {
			return netip.Addr{}, false
		}
	}
	if n := len(item); n >= 2 && item[0] == '"' && item[n-1] == '"' {
		item = item[1 : n-1]
	}
	if len(item) > 0 && item[0] == '[' {
		end := bytes.IndexByte(item, ']')
		if end < 0 {
			return netip.Addr{}, false
		}
		item = item[1:end]
	} else if c := bytes.IndexByte(item, ':'); c >= 0 && bytes.IndexByte(item[c+1:], ':') < 0 {
		item = item[:c]
	}
	if len(item) > 45 {
		return netip.Addr{}, false
	}
	a, err := netip.ParseAddr(string(item))
	return a.Unmap().WithZone(""), err == nil
}

func forValue(item []byte) []byte {
	for len(item) > 0 {
		pair := item
		if i := bytes.IndexByte(item, ';'); i >= 0 {
			pair, item = item[:i], item[i+1:]
		} else {
			item = nil
		}
		pair = bytes.TrimSpace(pair)
		if len(pair) > 4 && EqualFold(pair[:4], "for=") {
			return pair[4:]
		}
	}
	return nil
}
