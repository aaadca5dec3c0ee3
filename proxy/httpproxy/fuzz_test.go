package httpproxy

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/wyegate/wyegate/internal/http1"
	"github.com/wyegate/wyegate/proxy"
)

// What we write to a server parses again, to the same method, target, authority and framing, and shows no field that
// was cut (21.5).
func FuzzGate(f *testing.F) {
	f.Add([]byte("GET http://b.example/p;jsessionid=a.as1?q=1 HTTP/1.1\r\nHost: a\r\nConnection: x, host\r\nX: y\r\nX_Forwarded_For: z\r\n\r\n"))
	f.Add([]byte("OPTIONS /room HTTP/1.0\r\nMax-Forwards: 7\r\nCookie: WGROUTE=a; JSESSIONID=b.as2\r\nForwarded: for=\"[::1]\"\r\n\r\n"))
	w := newWorld(f)
	w.l.Matcher.Add(proxy.Pattern{}, w.conf.Target)
	f.Fuzz(func(t *testing.T, b []byte) {
		h := new(http1.Head)
		if n, err := h.ParseRequest(b, &http1.Limits{}); n == 0 || err != nil {
			return
		}
		v := &View{Head: h, Remote: netip.MustParseAddrPort("10.0.0.9:1"), Local: netip.MustParseAddrPort("10.0.0.1:80")}
		if w.l.Admit(v) != nil {
			return
		}
		var c Choice
		if err := w.d.Decide(w.gen, w.l, v, &c, nil); err != nil {
			return
		}
		defer c.End()
		out := append(append(append(append([]byte{}, v.Method...), ' '), v.Target...), " HTTP/1.1\r\n"...)
		out = w.d.AppendRequestFields(out, v, &c)
		if v.Framing.Kind == http1.Chunked {
			out = append(out, "Transfer-Encoding: chunked\r\n"...)
		}
		out = append(out, "\r\n"...)
		again := new(http1.Head)
		if n, err := again.ParseRequest(out, &http1.Limits{}); n != len(out) || err != nil {
			t.Fatalf("%q became %q: %v", b, out, err)
		}
		v2 := &View{Head: again, Remote: v.Remote, Local: v.Local}
		if err := w.l.Admit(v2); err != nil && err != ErrOptions {
			t.Fatalf("%q became %q: %v", b, out, err)
		}
		if !bytes.Equal(v.Method, v2.Method) || !bytes.Equal(v.Target, v2.Target) || !bytes.Equal(v.Authority, v2.Authority) || v.Framing != v2.Framing {
			t.Fatalf("%q became %q", b, out)
		}
		for i := range again.Fields {
			if again.Fields[i].Twin {
				t.Fatalf("a twin went on in %q", out)
			}
		}
	})
}
