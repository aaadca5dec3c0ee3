package sipproxy

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/wyegate/wyegate/internal/sip"
	"github.com/wyegate/wyegate/internal/sip/transport"
	"github.com/wyegate/wyegate/proxy"
)

// 21.5, branch: INVITE, CANCEL and the ACK to a non-2xx agree; any other field of the identity that differs gives another
// one, whatever moves from one field into its neighbour; what was made is verified, and no longer with a bit or the
// requester changed.
func FuzzIdentity(f *testing.F) {
	f.Add("z9hG4bKnashds8", "client.example.com", "5070", "77", "c7@ua", "sip:team@ex.com", uint32(1), uint16(0))
	f.Add("", "192.0.2.7", "", "", "x", "sip:a", uint32(0), uint16(211))
	f.Add("z9hG4bK", "a", "1", "1", "1", "1", uint32(1), uint16(1))
	s := testSecrets(f)
	k := s.Writer()
	f.Fuzz(func(t *testing.T, branchText, host, port, tag, callID, uri string, cseq uint32, bit uint16) {
		for _, p := range []string{branchText, host, port, tag, callID, uri} {
			if len(p) > 4000 {
				return // lengths are two octets
			}
		}
		build := func() identity {
			return identity{
				branch: []byte(branchText), host: []byte(host), port: []byte(port), topVia: []byte("SIP/2.0/UDP " + host + ":" + port + ";branch=" + branchText),
				fromTag: []byte(tag), callID: []byte(callID), cseq: cseq & 0x7fffffff, uri: []byte(uri),
			}
		}
		hash := func(change func(*identity)) uint64 {
			id := build()
			change(&id)
			d, _ := id.hash(k, nil)
			return d
		}
		d := hash(func(*identity) {})
		if hash(func(id *identity) { id.toTag = []byte("of the answer") }) != d { // CANCEL has none, the ACK has one
			t.Fatal("a To tag moves the ACK away from its INVITE")
		}
		for what, change := range changes(hasCookie([]byte(branchText))) {
			if hash(change) == d {
				t.Fatalf("%s differs, and the identity is the same", what)
			}
		}
		verify(t, s, d, bit)
	})
}

// changes are those of one field each that make another transaction.
func changes(withCookie bool) map[string]func(*identity) {
	more := func(b *[]byte) { *b = append(*b, 'x') }
	all := map[string]func(*identity){
		"Call-ID": func(id *identity) { more(&id.callID) },
		"CSeq":    func(id *identity) { id.cseq++ },
	}
	if withCookie {
		all["branch"] = func(id *identity) { more(&id.branch) }
		all["sent-by"] = func(id *identity) { more(&id.host) }
		all["port"] = func(id *identity) { id.port = append([]byte("9"), id.port...) }
		all["branch and Call-ID"] = func(id *identity) { more(&id.branch); id.callID = append([]byte("y"), id.callID...) }
		return all
	}
	all["top Via"] = func(id *identity) { more(&id.topVia) }
	all["From tag"] = func(id *identity) { more(&id.fromTag) }
	all["Request-URI"] = func(id *identity) { more(&id.uri) }
	all["To tag of another method"] = func(id *identity) { id.toInKey, id.toTag = true, []byte("x") }
	return all
}

// verify makes a branch for d, and looks for it with a bit changed and for other requesters.
func verify(t *testing.T, s *proxy.Secrets, d uint64, bit uint16) {
	var c branchCodec
	var back branch
	made := branch{d: d, server: uint32(d), listener: uint16(d >> 32), loop: uint32(d) & 0xffffff, hasFlow: bit%2 == 1, flow: d * uint64(bit%2)}
	at := hop{transport.UDP, netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(bit)}), bit|1)}
	text := c.append(nil, s, &made, at)
	if !c.read(text, s, at, &back) || back != made {
		t.Fatalf("%s is read as %+v, was made of %+v", text, back, made)
	}
	for _, other := range []hop{{transport.TCP, at.addr}, {at.kind, netip.AddrPortFrom(at.addr.Addr(), at.addr.Port()+2)}, {at.kind, netip.AddrPortFrom(at.addr.Addr().Next(), at.addr.Port())}} {
		if c.read(text, s, other, &back) {
			t.Fatalf("made for %v, and taken for %v", at, other)
		}
	}
	raw := make([]byte, maxBranch)
	n, _ := proxy.DecodeBase32(raw, text[len(cookie):])
	raw[int(bit/8)%n] ^= 1 << (bit % 8)
	if c.read(proxy.AppendBase32([]byte(cookie), raw[:n]), s, at, &back) {
		t.Fatalf("bit %d of %s changed, and it is taken", bit, text)
	}
}

// 21.5, self test: equal for all spellings of one address, and for no other one.
func FuzzSelf(f *testing.F) {
	f.Add([]byte{203, 0, 113, 10}, uint16(5060))
	f.Add([]byte{0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10}, uint16(5070))
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 1, 2, 3, 4}, uint16(1))
	f.Fuzz(func(t *testing.T, octets []byte, port uint16) {
		a, ok := netip.AddrFromSlice(octets)
		if !ok || port == 0 {
			return
		}
		s := newSelves()
		s.addAddr(netip.AddrPortFrom(a, port))
		own := func(host string) bool {
			u, err := sip.ParseURI(fmt.Appendf(nil, "sip:x@%s:%d;lr", host, port))
			if err != nil {
				t.Fatalf("%s: %v", host, err)
			}
			return s.uri(&u)
		}
		for _, host := range hostSpellings(a) {
			if !own(host) {
				t.Fatalf("%s is not %s", host, a)
			}
		}
		for _, host := range hostSpellings(a.Next()) {
			if a.Next().IsValid() && a.Next().Unmap() != a.Unmap() && own(host) {
				t.Fatalf("%s is taken for %s", host, a)
			}
		}
	})
}

// hostSpellings are those of an address in a URI.
func hostSpellings(a netip.Addr) []string {
	if !a.IsValid() {
		return nil
	}
	six := netip.AddrFrom16(a.As16())
	list := []string{"[" + six.StringExpanded() + "]", "[" + strings.ToUpper(six.StringExpanded()) + "]"}
	if a.Unmap().Is4() {
		b := a.Unmap().As4()
		return append(list, a.Unmap().String(), "[::ffff:"+a.Unmap().String()+"]", fmt.Sprintf("[::FFFF:%x:%x]", uint16(b[0])<<8|uint16(b[1]), uint16(b[2])<<8|uint16(b[3])))
	}
	return append(list, "["+six.String()+"]", "["+strings.ToUpper(six.String())+"]")
}
