package obs

import (
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics owns every family of the table. It is one collector: a scrape first asks the engine for its State, brings the
// counts of sockets up to date and then shows all families.
//
// The methods that resolve children hash labels and take locks: they are called when a generation is built. A message
// only adds to what they returned.
type Metrics struct {
	counters   [numFamilies]*prometheus.CounterVec
	gauges     [numFamilies]*prometheus.GaugeVec
	histograms [numFamilies]*prometheus.HistogramVec
	descs      [numFamilies]*prometheus.Desc // families made from the State

	state atomic.Pointer[func() State]

	scrape sync.Mutex        // one scrape, or one change of what lives, at a time; taken before mu
	taken  map[string]uint64 // guarded by scrape: counts already added, by listener and series

	mu    sync.Mutex
	known names // guarded by mu
}

// NewMetrics makes the families of the table and registers them. It fails when one of the names is taken.
func NewMetrics(reg prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{taken: map[string]uint64{}, known: newNames()}
	for i, f := range families {
		switch {
		case f.atScrape:
			m.descs[i] = prometheus.NewDesc(f.Name, f.Help, f.Labels, nil)
		case f.Kind == Counter:
			m.counters[i] = prometheus.NewCounterVec(prometheus.CounterOpts{Name: f.Name, Help: f.Help}, f.Labels)
		case f.Kind == Histogram:
			m.histograms[i] = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: f.Name, Help: f.Help, Buckets: f.Buckets}, f.Labels)
		default:
			m.gauges[i] = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: f.Name, Help: f.Help}, f.Labels)
		}
	}
	if err := reg.Register(m); err != nil {
		return nil, err
	}
	for i := range ReloadResults {
		m.Reloads(i)
	}
	return m, nil
}

// Watch names the function a scrape asks for the State. It must not call Sweep.
func (m *Metrics) Watch(state func() State) { m.state.Store(&state) }

// Reloads counts one offered configuration by its result, an index of ReloadResults.
func (m *Metrics) Reloads(result int) prometheus.Counter {
	return m.counters[configReloads].WithLabelValues(ReloadResults[result])
}

// SIPListener resolves the children of a listener. What its sockets count comes with the State.
func (m *Metrics) SIPListener(listener string) *SIPListener {
	m.note(func(n *names) { n.listeners[listener] = true })
	l := &SIPListener{Retransmissions: m.counters[sipRetransmissions].WithLabelValues(listener)}
	for i, w := range ParseReasons {
		l.ParseErrors[i] = m.counters[sipParseErrors].WithLabelValues(listener, w)
	}
	return l
}

// HTTPListener resolves the children of a listener. What its sockets count comes with the State.
func (m *Metrics) HTTPListener(listener string) *HTTPListener {
	m.note(func(n *names) { n.listeners[listener] = true })
	l := &HTTPListener{}
	for i, w := range RefusedReasons {
		l.Refused[i] = m.counters[httpRefused].WithLabelValues(listener, w)
	}
	return l
}

// SIPTarget resolves the children of an application behind a listener. Service and application are empty for what no
// application takes.
func (m *Metrics) SIPTarget(listener, service, application string) *SIPTarget {
	m.noteApp(listener, service, application)
	t := &SIPTarget{}
	for i, method := range SIPMethods {
		t.Requests[i] = m.counters[sipRequests].WithLabelValues(listener, service, application, method)
		for c, class := range CodeClasses {
			t.Responses[i][c] = m.counters[sipResponses].WithLabelValues(listener, service, application, method, class)
		}
	}
	return t
}

// HTTPTarget resolves the children of an application behind a listener; names are empty for what no application takes.
func (m *Metrics) HTTPTarget(listener, service, application string) *HTTPTarget {
	m.noteApp(listener, service, application)
	t := &HTTPTarget{}
	for c, class := range CodeClasses {
		t.Requests[c] = m.counters[httpRequests].WithLabelValues(listener, service, application, class)
		t.Duration[c] = m.histograms[httpDuration].WithLabelValues(listener, service, class)
	}
	return t
}

// Target resolves the children of an application. rules are the paths that Result.Rule counts.
func (m *Metrics) Target(service, application string, rules []string) *Target {
	m.note(func(n *names) {
		n.apps[[2]string{service, application}] = true
		n.services[service] = true
		for _, r := range rules {
			n.rules[[2]string{service, r}] = true
		}
	})
	t := &Target{
		Rules:       make([]prometheus.Counter, len(rules)),
		RuleSeconds: m.histograms[ruleSeconds].WithLabelValues(service),
	}
	for i, w := range KeySources {
		t.SIPKeys[i] = m.counters[keys].WithLabelValues(service, application, Protocols[0], w)
		t.HTTPKeys[i] = m.counters[keys].WithLabelValues(service, application, Protocols[1], w)
	}
	for i, r := range rules {
		t.Rules[i] = m.counters[ruleMatches].WithLabelValues(service, r)
	}
	for i, w := range SIPMethods {
		t.Duration[i] = m.histograms[sipDuration].WithLabelValues(service, w)
	}
	for i, w := range RuleLimitWords {
		t.RuleLimits[i] = m.counters[ruleLimits].WithLabelValues(service, w)
	}
	for i, w := range TokenReasons {
		t.TokensRefused[i] = m.counters[tokensRefused].WithLabelValues(service, w)
	}
	return t
}

// Enum resolves the children of a service with an enum block.
func (m *Metrics) Enum(service string) *Enum {
	m.note(func(n *names) { n.services[service] = true })
	e := &Enum{
		Duration: m.histograms[enumDuration].WithLabelValues(service),
		Parked:   m.counters[ruleLimits].WithLabelValues(service, RuleLimitWords[2]),
	}
	for i, w := range EnumResults {
		e.Results[i] = m.counters[enumLookups].WithLabelValues(service, w)
	}
	return e
}

// Server resolves the children of a server, for the protocols it has an address for.
func (m *Metrics) Server(pool, server string) *Server {
	m.note(func(n *names) { n.servers[[2]string{pool, server}] = true })
	s := &Server{}
	for p, proto := range Protocols {
		s.Requests[p] = m.counters[serverRequests].WithLabelValues(pool, server, proto)
		s.Failovers[p] = m.counters[serverFailovers].WithLabelValues(pool, server, proto)
		for i, w := range CheckResults {
			s.Checks[p][i] = m.counters[serverChecks].WithLabelValues(pool, server, proto, w)
		}
		for i, w := range EjectionCauses {
			s.Ejections[p][i] = m.counters[serverEjections].WithLabelValues(pool, server, proto, w)
		}
	}
	return s
}

// KeysMoved resolves the counter of a pool's live keys that changed servers.
func (m *Metrics) KeysMoved(pool string) prometheus.Counter {
	m.note(func(n *names) { n.pools[pool] = true })
	return m.counters[poolKeysMoved].WithLabelValues(pool)
}

// SiteSwitches resolves the counter of switches to a site; cause is an index of SiteCauses.
func (m *Metrics) SiteSwitches(site string, cause int) prometheus.Counter {
	m.note(func(n *names) { n.sites[site] = true })
	return m.counters[siteSwitches].WithLabelValues(site, SiteCauses[cause])
}

// LogDropped resolves the counter of lines a log lost: "access".
func (m *Metrics) LogDropped(log string) prometheus.Counter {
	return m.counters[logDropped].WithLabelValues(log)
}
