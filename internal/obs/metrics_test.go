package obs

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

func newTestMetrics(t *testing.T) (*Metrics, *prometheus.Registry) {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	m, err := NewMetrics(reg)
	if err != nil {
		t.Fatal(err)
	}
	return m, reg
}

// everything resolves each kind of child and gives a state in which each family has a series.
func everything(m *Metrics) State {
	m.SIPListener("sip-udp")
	m.HTTPListener("http")
	m.SIPTarget("sip-udp", "voice", "conference")
	m.HTTPTarget("http", "voice", "conference")
	m.Target("voice", "conference", []string{"/sip-rules/if[1]/else"})
	m.Enum("voice")
	m.Server("appservers", "as1")
	m.KeysMoved("appservers")
	m.SiteSwitches("ams", 0)
	m.LogDropped("access")
	return State{
		Version: "1.0.0", Revision: "abc", GoVersion: "go1.26", Generation: 42, Unconfirmed: true, LastReloadOK: true,
		LastReloadAt: time.Unix(1_700_000_000, 250e6),
		Servers: []ServerState{{
			Pool: "appservers", Server: "as1", Usable: true, Weight: 0.5, SlowStart: 1, Partitions: 16380, Admin: "drain",
			Health: map[string]string{"sip": "up", "http": "ejected"}, Dialogs: 7, Websockets: map[string]int{"http": 3},
			Drain: &DrainState{Dialogs: 7, Sessions: 2, Websockets: 3, Deadline: time.Unix(1_700_007_200, 0)},
		}},
		Listeners:    []ListenerState{{Listener: "sip-udp", Protocol: "sip", Transport: "udp", Handshakes: [4]uint64{1}}},
		Certificates: map[string]time.Time{"public": time.Unix(1, 0)},
		Pools:        []PoolState{{"appservers", true, 0.25}}, Sites: []SiteState{{"ams", true}},
		EnumWaiting: map[string]int{"voice": 4}, OverloadDelay: map[string]time.Duration{"sip": 20 * time.Millisecond},
	}
}

func gather(t *testing.T, reg *prometheus.Registry) map[string]*dto.MetricFamily {
	t.Helper()
	all, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*dto.MetricFamily{}
	for _, f := range all {
		out[f.GetName()] = f
	}
	return out
}

// contract is a family as docs/metrics.md writes it.
func contract(name, kind string, labels []string) string {
	labels = slices.Clone(labels)
	slices.Sort(labels)
	return name + " " + kind + " " + strings.Join(labels, " ")
}

// documented reads the block of docs/metrics.md.
func documented(t *testing.T) []string {
	t.Helper()
	b, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(b), "```text\n")
	block, _, _ = strings.Cut(block, "```")
	var out []string
	for line := range strings.Lines(block) {
		w := strings.Fields(line)
		if len(w) < 2 {
			t.Fatalf("docs/metrics.md: line %q has no type", line)
		}
		out = append(out, contract(w[0], w[1], w[2:]))
	}
	return out
}

// TestNamesTypesAndLabelsAreDocumented holds docs/metrics.md, the table and what a scrape shows against each other, in
// both directions (operations.md 8.1, F15).
func TestNamesTypesAndLabelsAreDocumented(t *testing.T) {
	m, reg := newTestMetrics(t)
	st := everything(m)
	m.Watch(func() State { return st })
	var shown, table []string
	for name, f := range gather(t, reg) {
		labels := map[string]bool{}
		for _, one := range f.GetMetric() {
			for _, l := range one.GetLabel() {
				labels[l.GetName()] = true
			}
		}
		var names []string
		for l := range labels {
			names = append(names, l)
		}
		shown = append(shown, contract(name, strings.ToLower(f.GetType().String()), names))
	}
	for _, f := range Families() {
		table = append(table, contract(f.Name, f.Kind.String(), f.Labels))
	}
	docs := documented(t)
	for _, c := range []struct {
		a, b   []string
		na, nb string
	}{{shown, docs, "/metrics", "docs/metrics.md"}, {docs, shown, "docs/metrics.md", "/metrics"}, {table, docs, "the table", "docs/metrics.md"}} {
		for _, f := range c.a {
			if !slices.Contains(c.b, f) {
				t.Errorf("%s has %q, %s has not", c.na, f, c.nb)
			}
		}
	}
	if len(docs) != int(numFamilies) {
		t.Errorf("%d families documented, %d in the table", len(docs), numFamilies)
	}
}

// TestMetricNamingRules is what promtool's linter checks, and the rule that no counter's name without _total is the name
// of another metric.
func TestMetricNamingRules(t *testing.T) {
	m, reg := newTestMetrics(t)
	st := everything(m)
	m.Watch(func() State { return st })
	var b bytes.Buffer
	enc := expfmt.NewEncoder(&b, expfmt.NewFormat(expfmt.TypeTextPlain))
	for _, f := range gather(t, reg) {
		if err := enc.Encode(f); err != nil {
			t.Fatal(err)
		}
	}
	problems, err := promlint.New(&b).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	names := map[string]bool{}
	for _, f := range Families() {
		names[f.Name] = true
	}
	for _, f := range Families() {
		bare, isTotal := strings.CutSuffix(f.Name, "_total")
		if isTotal != (f.Kind == Counter) {
			t.Errorf("%s is a %s", f.Name, f.Kind)
		}
		if isTotal && names[bare] {
			t.Errorf("%s and %s are one family in OpenMetrics", f.Name, bare)
		}
	}
}

func TestSetsOfStatesShowEveryWord(t *testing.T) {
	m, reg := newTestMetrics(t)
	st := everything(m)
	m.Watch(func() State { return st })
	all := gather(t, reg)
	set := func(family string, want map[string]float64) {
		t.Helper()
		got := map[string]float64{}
		for _, one := range all[family].GetMetric() {
			var key []string
			for _, l := range one.GetLabel() {
				if l.GetName() == "state" || l.GetName() == "protocol" {
					key = append(key, l.GetValue())
				}
			}
			got[strings.Join(key, " ")] = one.GetGauge().GetValue()
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", family, got, want)
		}
	}
	set("wyegate_server_admin_state", map[string]float64{"ready": 0, "drain": 1, "maint": 0})
	set("wyegate_server_health_state", map[string]float64{
		"sip unknown": 0, "sip up": 1, "sip down": 0, "sip draining": 0, "sip ejected": 0,
		"http unknown": 0, "http up": 0, "http down": 0, "http draining": 0, "http ejected": 1,
	})
}

func TestDrainGaugesExistOnlyWhileDraining(t *testing.T) {
	m, reg := newTestMetrics(t)
	st := everything(m)
	m.Watch(func() State { return st })
	deadline := gather(t, reg)["wyegate_server_drain_deadline_timestamp_seconds"]
	if v := deadline.GetMetric()[0].GetGauge().GetValue(); v != 1_700_007_200 {
		t.Errorf("deadline %v", v)
	}
	st.Servers[0].Drain = nil
	for name := range gather(t, reg) {
		if strings.Contains(name, "_drain_") {
			t.Errorf("%s is shown without a drain", name)
		}
	}
}

func TestSweepTakesSeriesOfWhatIsGone(t *testing.T) {
	m, reg := newTestMetrics(t)
	for _, s := range []string{"as1", "as2"} {
		m.Server("appservers", s).Requests[0].Inc()
	}
	m.Server("web", "as1").Requests[1].Inc()
	m.SIPListener("sip-udp")
	gone := m.SIPListener("sip-tcp")
	m.SIPTarget("sip-tcp", "voice", "conference").Requests[0].Inc()
	m.SIPTarget("sip-udp", "voice", "conference")
	m.SIPTarget("sip-udp", "", "")
	m.Target("voice", "conference", []string{"/a", "/b"})
	m.Target("voice", "help", nil)
	m.Target("old", "old", []string{"/a"})
	m.Sweep(Live{
		Listeners: []string{"sip-udp"}, Services: []string{"voice"}, Applications: [][2]string{{"voice", "conference"}},
		Rules: [][2]string{{"voice", "/b"}}, Servers: [][2]string{{"appservers", "as1"}, {"web", "as1"}}, Pools: []string{"appservers", "web"},
	})
	gone.Retransmissions.Inc() // an old connection ends late: nobody sees it, nothing breaks
	var b strings.Builder
	for name, f := range gather(t, reg) {
		for _, one := range f.GetMetric() {
			fmt.Fprintf(&b, "%s %v\n", name, one.GetLabel())
		}
	}
	for _, word := range []string{`"as2"`, `"sip-tcp"`, `"/a"`, `"help"`, `"old"`} {
		if strings.Contains(b.String(), word) {
			t.Errorf("a series with %s is still there", word)
		}
	}
	for _, word := range []string{`"as1"`, `"sip-udp"`, `"/b"`, `"conference"`} {
		if !strings.Contains(b.String(), word) {
			t.Errorf("no series with %s is left", word)
		}
	}
	if n := testutil.ToFloat64(m.Server("web", "as1").Requests[1]); n != 1 {
		t.Errorf("a server of the same name in another pool lost its count: %v", n)
	}
}

// TestCountsOfOthersAreAddedOnce: packages that count by themselves tell a sum; a scrape adds what came since the last.
func TestCountsOfOthersAreAddedOnce(t *testing.T) {
	m, reg := newTestMetrics(t)
	m.SIPListener("sip-udp").ParseErrors[ParseMalformed].Add(2)
	st := State{Listeners: []ListenerState{{Listener: "sip-udp", Transport: "udp", Connections: 5, Accepted: 10}, {Listener: "gone", Transport: "udp", Accepted: 3}}}
	st.Listeners[0].ParseErrors[ParseMalformed] = 1
	m.Watch(func() State { return st })
	accepted := func() float64 {
		f := gather(t, reg)["wyegate_listener_accepted_connections_total"]
		if len(f.GetMetric()) != 1 {
			t.Fatalf("series of a listener that nobody resolved: %v", f)
		}
		return f.GetMetric()[0].GetCounter().GetValue()
	}
	for _, step := range []struct {
		told uint64
		want float64
	}{{10, 10}, {10, 10}, {14, 14}, {3, 17}} { // at last a count that began anew
		st.Listeners[0].Accepted = step.told
		if got := accepted(); got != step.want {
			t.Errorf("told %d: %v, want %v", step.told, got, step.want)
		}
	}
	for _, one := range gather(t, reg)["wyegate_sip_parse_errors_total"].GetMetric() {
		if one.GetLabel()[1].GetValue() == "malformed" && one.GetCounter().GetValue() != 3 {
			t.Errorf("malformed: %v, want 2 of the worker and 1 of the transport", one)
		}
	}
}

// What two listeners shed is one series; that one of them leaves counts nothing of the other twice.
func TestWhatListenersShedIsOneSeries(t *testing.T) {
	m, reg := newTestMetrics(t)
	m.SIPListener("a")
	m.SIPListener("b")
	st := State{Listeners: []ListenerState{{Listener: "a", Protocol: "sip", Transport: "udp"}, {Listener: "b", Protocol: "sip", Transport: "tcp"}}}
	st.Listeners[0].Shed[1], st.Listeners[1].Shed[1] = 1000, 500
	m.Watch(func() State { return st })
	shed := func() float64 {
		for _, one := range gather(t, reg)["wyegate_overload_rejections_total"].GetMetric() {
			if one.GetLabel()[0].GetValue() == OverloadCauses[1] {
				return one.GetCounter().GetValue()
			}
		}
		return -1
	}
	if n := shed(); n != 1500 {
		t.Errorf("%v shed, want 1500", n)
	}
	st.Listeners = st.Listeners[1:]
	if n := shed(); n != 1500 {
		t.Errorf("%v shed after a listener left, want 1500", n)
	}
}

func TestUnknownMethodsShareOneWord(t *testing.T) {
	for i, w := range SIPMethods[:NumSIPMethods-1] {
		if SIPMethod([]byte(w)) != i {
			t.Errorf("%s is not number %d", w, i)
		}
	}
	for _, w := range []string{"", "invite", "FOO", "INVITEX", "other"} {
		if SIPMethods[SIPMethod([]byte(w))] != "other" {
			t.Errorf("%q is %s", w, SIPMethods[SIPMethod([]byte(w))])
		}
	}
	for code, want := range map[int]string{0: "none", 99: "none", 100: "1xx", 200: "2xx", 699: "6xx", 700: "none"} {
		if got := CodeClasses[CodeClass(code)]; got != want {
			t.Errorf("%d is %s, want %s", code, got, want)
		}
	}
}

// TestAMessageOnlyAdds: what a message does with its children allocates nothing (architecture.md 4.2, rules 1 and 4).
func TestAMessageOnlyAdds(t *testing.T) {
	m, _ := newTestMetrics(t)
	l, tg, a, s := m.SIPListener("u"), m.SIPTarget("u", "v", "c"), m.Target("v", "c", []string{"/x"}), m.Server("p", "s")
	method := []byte("INVITE")
	n := testing.AllocsPerRun(1000, func() {
		i := SIPMethod(method)
		tg.Requests[i].Inc()
		tg.Responses[i][CodeClass(200)].Inc()
		a.SIPKeys[0].Inc()
		a.Rules[0].Inc()
		a.Duration[i].Observe(0.02)
		s.Requests[SIP].Inc()
		l.Retransmissions.Inc()
	})
	if n != 0 {
		t.Errorf("%v allocations per message", n)
	}
}

func BenchmarkCountOneMessage(b *testing.B) {
	m, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		b.Fatal(err)
	}
	tg, a, s := m.SIPTarget("u", "v", "c"), m.Target("v", "c", []string{"/x"}), m.Server("p", "s")
	b.ReportAllocs()
	for b.Loop() {
		tg.Requests[0].Inc()
		tg.Responses[0][2].Inc()
		a.SIPKeys[0].Inc()
		a.Rules[0].Inc()
		a.Duration[0].Observe(0.02)
		s.Requests[SIP].Inc()
	}
}

func TestSecondsOfAPointInTime(t *testing.T) {
	if v := seconds(time.Unix(1_700_000_000, 250e6)); math.Abs(v-1_700_000_000.25) > 1e-6 {
		t.Errorf("%f", v)
	}
	if v := seconds(time.Time{}); v != 0 {
		t.Errorf("no time is %v", v)
	}
}

// TestWordsAreDocumented: each word a label can have stands in docs/metrics.md, in its order.
func TestWordsAreDocumented(t *testing.T) {
	b, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var lists []string
	for line := range strings.Lines(string(b)) {
		if cells := strings.Split(line, "|"); len(cells) == 5 {
			var found []string
			for i, w := range strings.Split(cells[3], "`") {
				if i%2 == 1 {
					found = append(found, w)
				}
			}
			lists = append(lists, strings.Join(found, " "))
		}
	}
	for name, l := range map[string][]string{
		"methods": SIPMethods[:], "classes": CodeClasses[:], "protocols": Protocols[:], "sources": KeySources[:], "reloads": ReloadResults[:],
		"parse": ParseReasons[:], "refused": RefusedReasons[:], "tokens": TokenReasons[:], "limits": RuleLimitWords[:], "enum": EnumResults[:],
		"admin": AdminStates[:], "health": HealthStates[:], "checks": CheckResults[:], "ejections": EjectionCauses[:], "sites": SiteCauses[:], "overload": OverloadCauses[:],
		"handshakes": HandshakeResults[:],
	} {
		if !slices.Contains(lists, strings.Join(l, " ")) {
			t.Errorf("%s: no row of docs/metrics.md has the words %v", name, l)
		}
	}
}
