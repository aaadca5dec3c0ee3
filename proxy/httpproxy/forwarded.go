package httpproxy

import (
	"bytes"
	"net/netip"
	"strconv"

	"github.com/wyegate/wyegate/internal/http1"
)

// appendForwarding writes who the client is (HH-3). From a peer that is not trusted nothing has come this far, so all
// fields are ours. A trusted peer's lists are continued with the peer, and what it said besides is kept.
func (v *View) appendForwarding(dst []byte) []byte {
	peer := v.Remote.Addr().Unmap().WithZone("")
	dst = v.appendList(dst, http1.XForwardedFor, "X-Forwarded-For: ")
	dst = append(peer.AppendTo(dst), "\r\n"...)
	dst = v.appendList(dst, http1.Forwarded, "Forwarded: ")
	dst = v.appendElement(dst, peer)
	if !v.keeps(http1.XForwardedProto) {
		dst = append(append(append(dst, "X-Forwarded-Proto: "...), v.scheme()...), "\r\n"...)
	}
	if !v.keeps(http1.XForwardedHost) {
		dst = append(append(append(dst, "X-Forwarded-Host: "...), v.Authority...), "\r\n"...)
	}
	if !v.keeps(http1.XForwardedPort) {
		dst = strconv.AppendUint(append(dst, "X-Forwarded-Port: "...), uint64(v.Local.Port()), 10)
		dst = append(dst, "\r\n"...)
	}
	if !v.keeps(http1.XRealIP) {
		dst = append(v.Client.AppendTo(append(dst, "X-Real-IP: "...)), "\r\n"...)
	}
	if v.ClientCert != nil && !v.Trusted { // a trusted peer's is its own, and not its client's
		dst = append(append(append(dst, "Client-Cert: "...), v.ClientCert...), "\r\n"...)
	}
	return dst
}

func (v *View) scheme() string {
	if v.TLS {
		return "https"
	}
	return "http"
}

// keeps says whether a field of a trusted peer goes on as it is.
func (v *View) keeps(id http1.ID) bool {
	i := v.Head.Get(id)
	return v.Trusted && i >= 0 && v.Head.Fields[i].Cut == http1.Keep
}

// continued takes a trusted peer's lists off the head, since appendList writes them again with one element more. It must
// run before the kept lines are written.
func (v *View) continued() {
	v.Head.CutAll(http1.XForwardedFor, http1.CutOwn)
	v.Head.CutAll(http1.Forwarded, http1.CutOwn)
}

func (v *View) appendList(dst []byte, id http1.ID, name string) []byte {
	dst = append(dst, name...)
	if !v.Trusted || v.Head.Count(id) == 0 {
		return dst
	}
	for i := range v.Head.Fields {
		f := &v.Head.Fields[i]
		if f.ID == id && f.Cut == http1.CutOwn && !f.Value.Empty() {
			dst = append(append(dst, v.Head.ValueOf(f)...), ", "...)
		}
	}
	return dst
}

// appendElement writes one forwarded-element (RFC 7239 4): IPv6 quoted and in brackets, the host quoted where a token
// can't hold it.
func (v *View) appendElement(dst []byte, peer netip.Addr) []byte {
	dst = append(dst, "for="...)
	if peer.Is6() {
		dst = append(peer.AppendTo(append(dst, `"[`...)), `]"`...)
	} else {
		dst = peer.AppendTo(dst)
	}
	dst = append(dst, ";host="...)
	if bytes.IndexAny(v.Authority, ":[") >= 0 {
		dst = append(append(append(dst, '"'), v.Authority...), '"')
	} else {
		dst = append(dst, v.Authority...)
	}
	dst = append(append(dst, ";proto="...), v.scheme()...)
	return append(dst, "\r\n"...)
}
