package httpproxy

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/wyegate/wyegate/dcr"
	"github.com/wyegate/wyegate/internal/http1"
	"github.com/wyegate/wyegate/proxy"
	"github.com/wyegate/wyegate/routing"
)

const rules = `<user-centric-rules><http-rules><or>
 <request-uri parameter="conf" return="parameter.conf"><exist/></request-uri>
 <header name="X-Conference" return="request.X-Conference"><exist/></header>
 <header name="X-Forwarded-For" return="request.X-Forwarded-For"><exist/></header>
 </or></http-rules></user-centric-rules>`

// world is a converged application with rules and a web application, behind one listener.
type world struct {
	t    testing.TB
	gen  *Generation
	l    *Listener
	pool *routing.Pool
	conf *App
	web  *App
	d    Decider
}

func newWorld(t testing.TB) *world {
	t.Helper()
	secrets, err := proxy.NewSecrets([]proxy.Secret{{Bytes: []byte("wyegate test secret")}})
	if err != nil {
		t.Fatal(err)
	}
	reg := &routing.Registry{}
	var members []routing.Member
	for i := 1; i <= 4; i++ {
		name := fmt.Sprintf("as%d", i)
		addr := netip.AddrPortFrom(netip.MustParseAddr("10.0.0.1"), uint16(8000+i))
		members = append(members, routing.Member{Server: reg.Server("appservers", name), Weight: 100,
			Addresses: []routing.Address{{Proto: routing.HTTP, Transport: "tcp", Addr: addr, Host: addr.String()}}})
	}
	table, err := routing.NewTable(members, routing.DefaultHash)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, pool: routing.NewPool(reg, "appservers", routing.Config{}, table)}
	rs, problems := dcr.Compile("rules.xml", []byte(rules), dcr.Options{})
	if rs == nil {
		t.Fatal(problems)
	}
	names := proxy.TokenNames{SIPParameter: "wg", HTTPCookie: "WGROUTE", HTTPPathParameter: "wgroute"}
	key := []proxy.KeyPart{proxy.PartRemoteHost, proxy.PartRemotePort}
	conf := &proxy.Target{Service: "voice", Application: "conference", Name: "voice/conference", Tag: routing.Tag("voice/conference"),
		Kind: routing.Converged, Pool: w.pool, Keyer: rs, RuleFile: "rules.xml", HTTPKey: key, Tokens: names,
		Sticky: proxy.Sticky{SessionCookies: []string{"JSESSIONID"}, SameSite: "Lax", Path: "/room"}, TellKey: "X-Wyegate-Key", TellToken: "X-Wyegate-Token"}
	web := &proxy.Target{Service: "voice", Application: "help", Name: "voice/help", Tag: routing.Tag("voice/help"), Number: 1,
		Kind: routing.Web, Pool: w.pool, Keyer: rs, HTTPKey: key, Tokens: names,
		Sticky: proxy.Sticky{SessionCookies: []string{"JSESSIONID"}, SameSite: "Lax", Path: "/help"}}
	service := &Service{Name: "voice", Via: "wyegate", Upgrade: []string{"websocket"}, TrustFrom: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:1::/48")}}
	connect := Connect{}.WithDefaults()
	w.conf, w.web = &App{Target: conf, Service: service, Connect: &connect}, &App{Target: web, Service: service, Connect: &connect}
	m := &proxy.Matcher{}
	m.Add(proxy.Pattern{Host: "phone.example.net", Path: "/room"}, conf)
	m.Add(proxy.Pattern{Host: "phone.example.net", Path: "/help"}, web)
	w.l = &Listener{Name: "http", Matcher: m, Apps: []*App{w.conf, w.web}, DefaultHost: "phone.example.net"}
	w.gen = &Generation{Number: 42, Secrets: secrets, Listeners: map[string]*Listener{"http": w.l}, Limits: Limits{}.WithDefaults()}
	return w
}

// view indexes and admits a request from a peer.
func (w *world) view(peer, text string) (*View, error) {
	w.t.Helper()
	h := new(http1.Head)
	if n, err := h.ParseRequest([]byte(text), &http1.Limits{}); n == 0 || err != nil {
		w.t.Fatalf("%q: %v", text, err)
	}
	v := &View{Head: h, Remote: netip.MustParseAddrPort(peer), Local: netip.MustParseAddrPort("203.0.113.10:80")}
	return v, w.l.Admit(v)
}

func (w *world) decide(peer, text string) (*View, *Choice) {
	w.t.Helper()
	v, err := w.view(peer, text)
	if err != nil {
		w.t.Fatalf("%q: %v", text, err)
	}
	c := new(Choice)
	if err := w.d.Decide(w.gen, w.l, v, c, nil); err != nil {
		w.t.Fatalf("%q: %v", text, err)
	}
	w.t.Cleanup(c.End)
	return v, c
}

const stranger = "192.0.2.7:51000"

func request(target string, fields ...string) string {
	return "GET " + target + " HTTP/1.1\r\nHost: Phone.Example.NET:8080\r\n" + strings.Join(append(fields, "", ""), "\r\n")
}

// dcr.md 5.7, example E: the rule key, in all its spellings, names one server; without a match it is the remote host and
// port; a web application takes turns.
func TestWhereRequestsGo(t *testing.T) {
	w := newWorld(t)
	want := ""
	for _, text := range []string{
		request("/room?conf=room-4711"), request("/room/x?a=b&conf=room%2D4711"), request("/room;p=1?conf=room-4711&conf=other"),
		request("/room", "x-conference:  room-4711 "), "GET http://PHONE.example.net/room?conf=room-4711 HTTP/1.1\r\nHost: other\r\n\r\n",
		"GET /room?conf=room-4711 HTTP/1.0\r\n\r\n",
	} {
		_, c := w.decide(stranger, text)
		if c.Source != proxy.SourceRule || string(c.Key) != "room-4711" || c.Request.Hash != 0xfdea3fc9cc41581c {
			t.Errorf("%q: %s %q", text, c.Source, c.Key)
		}
		if want == "" {
			want = c.Server().Name
		}
		if c.Server().Name != want {
			t.Errorf("%q went to %s, not %s", text, c.Server().Name, want)
		}
	}
	_, c := w.decide(stranger, request("/room"))
	if c.Source != proxy.SourceDefault || string(c.Key) != "192.0.2.7:51000" || c.RuleName() != "" {
		t.Errorf("default key is %q, %s", c.Key, c.Source)
	}
	_, c = w.decide("[2001:db8::7]:51000", request("/room"))
	if string(c.Key) != "[2001:db8::7]:51000" {
		t.Errorf("default key is %q", c.Key)
	}
	turns := map[string]int{}
	for range 8 {
		_, c := w.decide(stranger, request("/help"))
		turns[c.Server().Name]++
		if c.Source != proxy.SourceRoundRobin || c.Key != nil {
			t.Errorf("web: %s %q", c.Source, c.Key)
		}
	}
	if len(turns) != 4 || turns["as1"] != 2 {
		t.Errorf("turns %v", turns)
	}
	v, err := w.view(stranger, request("/rooms"))
	if err != nil || w.d.Decide(w.gen, w.l, v, new(Choice), nil) != ErrNoApplication {
		t.Error("/rooms was taken")
	}
}

func (w *world) token(app *App, use proxy.Use, tok proxy.Token) string {
	tok.HasServer, tok.App = true, app.Target.Tag
	var c proxy.Codec
	return string(c.AppendToken(nil, w.gen.Secrets, use, &tok))
}

// dcr.md 5.7 step 1, sip-http.md 6.3, HS-1: tokens of HTTP and of Record-Route count in our carriers, for their own
// application; a server that cannot serve makes the token stale.
func TestTokens(t *testing.T) {
	w := newWorld(t)
	hash := xxhash.Sum64String("room-4711")
	as3 := routing.Tag("as3")
	keyed := w.token(w.conf, proxy.UseHTTP, proxy.Token{HasKey: true, Hash: hash, Server: as3})
	route := w.token(w.conf, proxy.UseRecordRoute, proxy.Token{HasKey: true, Hash: hash, Server: as3})
	pinned := w.token(w.conf, proxy.UseHTTP, proxy.Token{Pinned: true, Server: as3})
	other := w.token(w.web, proxy.UseHTTP, proxy.Token{Pinned: true, Server: as3})
	path := w.token(w.conf, proxy.UsePath, proxy.Token{Pinned: true, Server: as3})
	for _, c := range []struct {
		name, text string
		source     proxy.KeySource
		at3        bool
	}{
		{"cookie", request("/room?conf=x", "Cookie: a=b; WGROUTE="+keyed), proxy.SourceToken, true},
		{"quoted cookie", request("/room?conf=x", `Cookie: WGROUTE="`+keyed+`"`), proxy.SourceToken, true},
		{"second cookie line", request("/room?conf=x", "Cookie: WGROUTE=bad", "Cookie: WGROUTE="+keyed), proxy.SourceToken, true},
		{"path parameter", request("/room;a=b;WGROUTE=" + keyed + "/x;y?conf=x"), proxy.SourceToken, true},
		{"cookie before path", request("/room;wgroute="+keyed, "Cookie: WGROUTE="+pinned), proxy.SourceToken, true},
		{"record-route", request("/room;wgroute=" + route), proxy.SourceToken, true},
		{"pinned", request("/room?conf=x", "Cookie: WGROUTE="+pinned), proxy.SourceToken, true},
		{"route in cookie", request("/room?conf=x", "Cookie: JSESSIONID=abc.as3"), proxy.SourceToken, true},
		{"route in path", request("/room;jsessionid=abc.d.as3?conf=x"), proxy.SourceToken, true},
		{"first known route", request("/room?conf=x", "Cookie: JSESSIONID=abc.zz; JSESSIONID=abc.as3; JSESSIONID=x.as1"), proxy.SourceToken, true},
		{"another application", request("/room?conf=x", "Cookie: WGROUTE="+other), proxy.SourceRule, false},
		{"use path", request("/room?conf=x", "Cookie: WGROUTE="+path), proxy.SourceRule, false},
		{"forged", request("/room?conf=x", "Cookie: WGROUTE="+keyed[:41]+"a"), proxy.SourceRule, false},
		{"cookie of another case", request("/room?conf=x", "Cookie: wgroute="+keyed), proxy.SourceRule, false},
		{"session id of another case", request("/room?conf=x", "Cookie: jsessionid=abc.as3"), proxy.SourceRule, false},
		{"no route", request("/room?conf=x", "Cookie: JSESSIONID=abc."), proxy.SourceRule, false},
		{"in the query", request("/room?conf=x&;wgroute=" + keyed), proxy.SourceRule, false},
	} {
		_, ch := w.decide(stranger, c.text)
		if ch.Source != c.source || c.at3 && ch.Server().Name != "as3" {
			t.Errorf("%s: %s at %s", c.name, ch.Source, ch.Server().Name)
		}
	}
	w.pool.SetAdmin(w.pool.Table().ByName("as3").Server, routing.Maint, "test", time.Now())
	owner := w.pool.Explain(routing.Request{Proto: routing.HTTP, Policy: routing.HashPolicy, HasKey: true, Hash: hash}, nil).Server
	_, ch := w.decide(stranger, request("/room?conf=x", "Cookie: WGROUTE="+keyed))
	if ch.Source != proxy.SourceStaleToken || ch.Server().Name != owner {
		t.Errorf("stale: %s at %s, the key's choice is %s", ch.Source, ch.Server().Name, owner)
	}
	_, ch = w.decide(stranger, request("/room?conf=x", "Cookie: WGROUTE="+pinned))
	if ch.Source != proxy.SourceStaleToken || string(ch.Key) != "x" {
		t.Errorf("stale without a key: %s %q", ch.Source, ch.Key)
	}
}

// affinity.http.order: rule-first turns steps 1 and 2 round: a page that names a key goes to that key's server.
func TestRuleFirst(t *testing.T) {
	w := newWorld(t)
	tok := w.token(w.conf, proxy.UseHTTP, proxy.Token{HasKey: true, Hash: xxhash.Sum64String("y"), Server: routing.Tag("as3")})
	first := *w.conf.Target
	first.Sticky.RuleFirst = true
	w.conf.Target = &first
	m := &proxy.Matcher{}
	m.Add(proxy.Pattern{}, &first)
	w.l.Matcher = m
	if _, c := w.decide(stranger, request("/room?conf=x", "Cookie: WGROUTE="+tok)); c.Source != proxy.SourceRule || string(c.Key) != "x" {
		t.Errorf("%s %q", c.Source, c.Key)
	}
	if _, c := w.decide(stranger, request("/room", "Cookie: WGROUTE="+tok)); c.Source != proxy.SourceToken || c.Server().Name != "as3" {
		t.Errorf("without a rule's key: %s at %s", c.Source, c.Server().Name)
	}
	if _, c := w.decide(stranger, request("/room")); c.Source != proxy.SourceDefault {
		t.Errorf("without both: %s", c.Source)
	}
	if _, c := w.decide(stranger, request("/room?conf=y", "Cookie: WGROUTE="+tok)); c.Source != proxy.SourceRule || c.Server().Name != "as3" {
		t.Errorf("the same key strayed: %s at %s", c.Source, c.Server().Name)
	}
}

// HH-3, SS-3: what a stranger claims is gone for rules and server; what a trusted peer says is continued.
func TestForwarding(t *testing.T) {
	w := newWorld(t)
	claims := []string{"X-Forwarded-For: 6.6.6.6", "Forwarded: for=6.6.6.6", "X-Forwarded-Proto: https", "X-Forwarded-Host: evil", "X-Forwarded-Port: 1",
		"X-Real-IP: 6.6.6.6", "X_Forwarded_For: 6.6.6.6", "Client-Cert: x", "X-SSL-Client-DN: x", "X-Wyegate-Key: x", "x-wyegate_token: x", "P-Preferred-Identity: x",
		"Connection: X-Forwarded-For"}
	v, c := w.decide(stranger, request("/room", claims...))
	if c.Source != proxy.SourceDefault {
		t.Errorf("a rule saw a stranger's field: %q", c.Key)
	}
	got := string(w.d.AppendRequestFields(nil, v, c))
	token := w.token(w.conf, proxy.UseHTTP, proxy.Token{HasKey: true, Hash: c.Request.Hash, Server: c.Server().Tag})
	want := "Host: Phone.Example.NET:8080\r\nVia: 1.1 wyegate\r\nX-Forwarded-For: 192.0.2.7\r\n" +
		"Forwarded: for=192.0.2.7;host=\"Phone.Example.NET:8080\";proto=http\r\nX-Forwarded-Proto: http\r\n" +
		"X-Forwarded-Host: Phone.Example.NET:8080\r\nX-Forwarded-Port: 80\r\nX-Real-IP: 192.0.2.7\r\n" +
		"X-Wyegate-Key: 192.0.2.7:51000\r\nX-Wyegate-Token: " + token + "\r\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if again := string(w.d.AppendRequestFields(nil, v, c)); again != got {
		t.Errorf("a second attempt differs:\n%s", again)
	}

	v, c = w.decide("10.1.1.1:5", request("/help", "X-Forwarded-For: 6.6.6.6, 198.51.100.9", "X-Forwarded-For: 10.2.2.2", "X-Forwarded-Proto: https",
		"Forwarded: for=198.51.100.9", "X_Real_IP: 1.1.1.1"))
	got = string(w.d.AppendRequestFields(nil, v, c))
	for _, line := range []string{"X-Forwarded-For: 6.6.6.6, 198.51.100.9, 10.2.2.2, 10.1.1.1\r\n", "X-Forwarded-Proto: https\r\n", "X-Real-IP: 198.51.100.9\r\n",
		"Forwarded: for=198.51.100.9, for=10.1.1.1;host="} {
		if !strings.Contains(got, line) {
			t.Errorf("without %q:\n%s", line, got)
		}
	}
	if strings.Contains(got, "1.1.1.1\r\n\r\n") || strings.Count(got, "X-Forwarded-Proto") != 1 || strings.Contains(got, "X_Real") {
		t.Errorf("got\n%s", got)
	}
	if v.Client != netip.MustParseAddr("198.51.100.9") || string(v.AppendPart(nil, proxy.PartClientAddress)) != "198.51.100.9" {
		t.Errorf("client is %v", v.Client)
	}

	v, c = w.decide("[2001:db8:1::1]:5", request("/help", `Forwarded: For="[2001:db8::9]:4711";proto=https`))
	got = string(w.d.AppendRequestFields(nil, v, c))
	if v.Client != netip.MustParseAddr("2001:db8::9") || !strings.Contains(got, `;proto=https, for="[2001:db8:1::1]";host=`) {
		t.Errorf("client %v\n%s", v.Client, got)
	}
}

// HH-3: the client is found from the right, through trusted hops only; what is no address ends the search.
func TestClientAddress(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct{ peer, value, want string }{
		{"10.1.1.1:5", "1.1.1.1, 2.2.2.2", "2.2.2.2"},
		{"10.1.1.1:5", "1.1.1.1, 10.9.9.9", "1.1.1.1"},
		{"10.1.1.1:5", "unknown, 10.9.9.9", "10.9.9.9"},
		{"10.1.1.1:5", "1.1.1.1, _hidden", "10.1.1.1"},
		{"10.1.1.1:5", "1.1.1.1:4711", "1.1.1.1"},
		{"10.1.1.1:5", "[2001:db8::9]:1", "2001:db8::9"},
		{"10.1.1.1:5", "::ffff:1.2.3.4", "1.2.3.4"},
		{"192.0.2.1:5", "1.1.1.1", "192.0.2.1"},
		{"[::ffff:10.1.1.1]:5", "1.1.1.1", "1.1.1.1"},
	} {
		v, _ := w.decide(c.peer, request("/help", "X-Forwarded-For: "+c.value))
		if v.Client != netip.MustParseAddr(c.want) {
			t.Errorf("%s from %s: client %v, want %s", c.value, c.peer, v.Client, c.want)
		}
	}
}

// HS-3, section 7: the cookie, its flags, and when it is set.
func TestCookie(t *testing.T) {
	w := newWorld(t)
	plain := "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
	begins := "HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nset-cookie: JSESSIONID=x.as1; Path=/\r\n\r\n"
	similar := "HTTP/1.1 200 OK\r\nSet-Cookie: XJSESSIONID=x\r\nSet_Cookie: JSESSIONID=x\r\n\r\n"
	write := func(v *View, c *Choice, text string) string {
		h := new(http1.Head)
		if n, err := h.ParseResponse([]byte(text), &http1.Limits{}); n == 0 || err != nil {
			t.Fatal(err)
		}
		h.CutHopByHop()
		_, own, _ := strings.Cut(string(w.d.AppendResponseFields(nil, v, c, h)), "Set-Cookie: WGROUTE=")
		return own
	}
	v, c := w.decide(stranger, request("/room?conf=room-4711"))
	want := w.token(w.conf, proxy.UseHTTP, proxy.Token{HasKey: true, Hash: c.Request.Hash, Server: c.Server().Tag}) + "; Path=/room; HttpOnly; SameSite=Lax\r\n"
	if got := write(v, c, begins); got != want {
		t.Errorf("converged: %q, want %q", got, want)
	}
	for _, text := range []string{plain, similar} {
		if got := write(v, c, text); got != "" {
			t.Errorf("%q: %q", text, got)
		}
	}
	v, c = w.decide(stranger, request("/help"))
	v.TLS = true
	pinned := w.token(w.web, proxy.UseHTTP, proxy.Token{Pinned: true, Server: c.Server().Tag})
	if got := write(v, c, begins); got != pinned+"; Path=/help; HttpOnly; SameSite=Lax; Secure\r\n" {
		t.Errorf("web: %q", got)
	}
	v, c = w.decide(stranger, request("/help", "Cookie: WGROUTE="+pinned))
	if got := write(v, c, begins); got != "" {
		t.Errorf("the client has it: %q", got)
	}
	always := *w.web.Target
	always.Sticky.Mode = proxy.CookieAlways
	c.App = &App{Target: &always, Service: w.web.Service}
	if got := write(v, c, plain); got != "" {
		t.Errorf("always, and the client has it: %q", got)
	}
	c.session = session{}
	if got := write(v, c, plain); got == "" {
		t.Error("always, and it was not set")
	}
	always.Sticky.Mode = proxy.CookieOff
	if got := write(v, c, begins); got != "" {
		t.Errorf("off: %q", got)
	}
}

// F3: explain is the decision of traffic.
func TestExplain(t *testing.T) {
	w := newWorld(t)
	for _, text := range []string{
		request("/room?conf=room-4711"), request("/room"), request("/room", "X-Conference: z"),
		request("/room", "Cookie: JSESSIONID=a.as2"), request("/help", "Cookie: JSESSIONID=a.as4"),
	} {
		var e proxy.Explanation
		v, _ := w.view(stranger, text)
		v.Head.Reset()
		if n, err := v.Head.ParseRequest([]byte(text), &http1.Limits{}); n == 0 || err != nil {
			t.Fatal(err)
		}
		var c Choice
		w.d.Explain(w.gen, w.l, v, &c, &e)
		_, traffic := w.decide(stranger, text)
		if e.Server != traffic.Server().Name || e.Key != string(traffic.Key) || e.Source != traffic.Source.String() || e.Rule != traffic.RuleName() {
			t.Errorf("%q: explained %+v, traffic %s %q %s", text, e, traffic.Server().Name, traffic.Key, traffic.Source)
		}
		if c.Server() != nil {
			t.Error("explain took a lease")
		}
	}
	var e proxy.Explanation
	text := request("/room?conf=room-4711", "X-Forwarded-For: 1.1.1.1")
	v, _ := w.view(stranger, text)
	v.Head.Reset()
	_, _ = v.Head.ParseRequest([]byte(text), &http1.Limits{})
	w.d.Explain(w.gen, w.l, v, new(Choice), &e)
	if e.Hash != "0xfdea3fc9cc41581c" || e.Partition == nil || *e.Partition != 42930 || e.Application != "voice/conference" || !e.Initial ||
		e.Decided != "rule" || e.Kind != "converged" || len(e.Rules) == 0 || len(e.Candidates) != 4 || !slices.Equal(e.Removed, []string{"X-Forwarded-For"}) ||
		e.Target != "http://Phone.Example.NET:8080/room?conf=room-4711" || e.Generation != 42 {
		t.Errorf("%+v", e)
	}
	for text, status := range map[string]int{request("/nothing"): 404, "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n": 200, "GET / HTTP/1.1\r\n\r\n": 400} {
		var e proxy.Explanation
		h := new(http1.Head)
		_, _ = h.ParseRequest([]byte(text), &http1.Limits{})
		w.d.Explain(w.gen, w.l, &View{Head: h, Remote: netip.MustParseAddrPort(stranger)}, new(Choice), &e)
		if e.Status != status || e.Error == "" {
			t.Errorf("%q: %d %q", text, e.Status, e.Error)
		}
	}
}

// numbers answers nothing in time and counts who waits.
type numbers struct {
	waits   int
	silence bool
}

func (n *numbers) Await(*proxy.Target, []byte, time.Time) bool {
	n.waits++
	return !n.silence
}

// needy is a rule set that always misses a number, and gives a key by another rule when it is told to give up.
type needy struct{}

func (needy) Key(_ dcr.Message, s *dcr.Scratch, _ *dcr.Trace) dcr.Result {
	if s.GiveUp {
		return dcr.Result{Outcome: dcr.Matched, Key: []byte("room")}
	}
	return dcr.Result{Outcome: dcr.NeedNumber, Number: []byte("4687190000"), Rule: -1}
}
func (needy) Rules() []dcr.Rule { return []dcr.Rule{{Path: "/if[2]"}} }

// dcr.md 14: a rule that needs a number makes its own request wait, at most for eight numbers; then numbers are null and
// the rules behind it are asked, and so at once when no answer comes.
func TestNumbers(t *testing.T) {
	w := newWorld(t)
	var n numbers
	w.gen.Numbers = &n
	target := *w.conf.Target
	target.Keyer = needy{}
	w.conf.Target = &target
	m := &proxy.Matcher{}
	m.Add(proxy.Pattern{}, &target)
	w.l.Matcher = m
	for _, n.silence = range []bool{false, true} {
		want := maxNumbers
		if n.silence {
			want = 1
		}
		n.waits = 0
		if _, c := w.decide(stranger, request("/room")); c.Source != proxy.SourceRule || string(c.Key) != "room" || n.waits != want {
			t.Errorf("silence %v: %s %q after %d waits, want %d", n.silence, c.Source, c.Key, n.waits, want)
		}
	}
}

// Next leaves no server twice, gives back what it took, and ends with the error that ended the last attempt.
func TestNext(t *testing.T) {
	w := newWorld(t)
	v, c := w.decide(stranger, request("/room?conf=room-4711"))
	seen := []string{c.Server().Name}
	for range 2 {
		if err := w.d.Next(v, c, ErrConnect); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(seen, c.Server().Name) {
			t.Errorf("%s again", c.Server().Name)
		}
		seen = append(seen, c.Server().Name)
	}
	if err := w.d.Next(v, c, ErrConnectSlow); err != ErrConnectSlow || c.Server() != nil {
		t.Errorf("a fourth try: %v", err)
	}
	if !slices.Equal(c.Servers(), seen) || c.Letter() != '3' {
		t.Errorf("servers %v, letter %c", c.Servers(), c.Letter())
	}
	for i := range w.pool.Table().Members {
		if n := w.pool.Table().Members[i].Active(); n != 0 {
			t.Errorf("%d leases are left", n)
		}
	}
}
