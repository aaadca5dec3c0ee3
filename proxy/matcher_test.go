package proxy

import (
	"testing"

	"github.com/wyegate/wyegate/routing"
)

func httpOnly(t *Target) bool { return t.Kind != routing.SIPOnly }
func sipOnly(t *Target) bool  { return t.Kind != routing.Web }

// operations.md 3.3: exact host, then the longest suffix, then none; then the longest path, by whole segments.
func TestMatcherOrder(t *testing.T) {
	target := func(name string, k routing.ServiceKind) *Target { return &Target{Name: name, Kind: k} }
	room := target("room", routing.Converged)
	help := target("help", routing.Web)
	trunk := target("trunk", routing.SIPOnly)
	deep := target("deep", routing.SIPOnly)
	rest := target("rest", routing.Converged)
	var m Matcher
	for _, a := range []struct {
		host, path string
		t          *Target
	}{
		{"", "", rest},
		{"*.carrier.example.net", "", trunk},
		{"*.deep.carrier.example.net", "", deep},
		{"phone.example.net", "/room", room},
		{"phone.example.net", "/help", help},
	} {
		if clash := m.Add(Pattern{a.host, a.path}, a.t); clash != nil {
			t.Fatalf("%s%s clashes with %s", a.host, a.path, clash.Name)
		}
	}
	for _, c := range []struct {
		host, path string
		accept     func(*Target) bool
		want       *Target
	}{
		{"phone.example.net", "/room", httpOnly, room},
		{"phone.example.net", "/room/1", httpOnly, room},
		{"phone.example.net", "/room;wgroute=x", httpOnly, room},
		{"phone.example.net", "/rooms", httpOnly, rest},
		{"phone.example.net", "/help/me", httpOnly, help},
		{"phone.example.net", "", sipOnly, rest},
		{"a.carrier.example.net", "", sipOnly, trunk},
		{"a.deep.carrier.example.net", "", sipOnly, deep},
		{"carrier.example.net", "", sipOnly, rest},
		{"a.carrier.example.net", "/x", httpOnly, rest},
		{"", "", sipOnly, rest},
	} {
		if got := m.Match([]byte(c.host), []byte(c.path), c.accept); got != c.want {
			t.Errorf("%s%s goes to %v, want %s", c.host, c.path, got, c.want.Name)
		}
	}
	if clash := m.Add(Pattern{"PHONE.example.net", "/room"}, rest); clash != room {
		t.Errorf("a second application for one pattern: clash is %v", clash)
	}
	if n := testing.AllocsPerRun(100, func() { m.Match([]byte("a.deep.carrier.example.net"), []byte("/x"), httpOnly) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A SIP request has no path, so an application's path prefix must not hide it from calls.
func TestMatcherSIPIgnoresPaths(t *testing.T) {
	conf := &Target{Name: "conference", Kind: routing.Converged}
	var m Matcher
	m.Add(Pattern{"sip.example.net", "/room"}, conf)
	if got := m.MatchHost([]byte("sip.example.net"), sipOnly); got != conf {
		t.Errorf("a call to the host of an application with a path goes to %v", got)
	}
}
