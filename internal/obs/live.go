package obs

import "github.com/prometheus/client_golang/prometheus"

// names are the label values that have series.
type names struct {
	listeners, services, pools, sites map[string]bool
	apps, rules, servers              map[[2]string]bool
}

func newNames() names {
	return names{
		map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{},
		map[[2]string]bool{}, map[[2]string]bool{}, map[[2]string]bool{},
	}
}

// note keeps what was resolved, so that Sweep finds what nobody resolved again.
func (m *Metrics) note(add func(*names)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	add(&m.known)
}

func (m *Metrics) noteApp(listener, service, application string) {
	m.note(func(n *names) {
		n.listeners[listener] = true
		n.services[service] = true
		n.apps[[2]string{service, application}] = true
	})
}

// Live names what a generation has: everything else loses its series.
type Live struct {
	Listeners    []string
	Services     []string
	Applications [][2]string // service, application
	Rules        [][2]string // service, rule path
	Servers      [][2]string // pool, server
	Pools        []string
	Sites        []string
}

// Sweep removes the series of all that is not in l. It is called after a new generation has taken over; children of a
// removed name may still be added to, and nobody sees it.
func (m *Metrics) Sweep(l Live) {
	m.scrape.Lock()
	defer m.scrape.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	for n := range gone(m.known.listeners, append(l.Listeners, "")) {
		m.drop(prometheus.Labels{"listener": n})
	}
	for n := range gone(m.known.services, append(l.Services, "")) {
		m.drop(prometheus.Labels{"service": n})
	}
	for n := range gone(m.known.apps, append(l.Applications, [2]string{})) {
		m.drop(prometheus.Labels{"service": n[0], "application": n[1]})
	}
	for n := range gone(m.known.rules, l.Rules) {
		m.drop(prometheus.Labels{"service": n[0], "rule": n[1]})
	}
	for n := range gone(m.known.servers, l.Servers) {
		m.drop(prometheus.Labels{"pool": n[0], "server": n[1]})
	}
	for n := range gone(m.known.pools, l.Pools) {
		m.drop(prometheus.Labels{"pool": n})
	}
	for n := range gone(m.known.sites, l.Sites) {
		m.drop(prometheus.Labels{"site": n})
	}
}

// gone takes out of known what is not in live, and returns it.
func gone[K comparable](known map[K]bool, live []K) map[K]bool {
	keep := make(map[K]bool, len(live))
	for _, n := range live {
		keep[n] = true
	}
	out := map[K]bool{}
	for n := range known {
		if !keep[n] {
			out[n] = true
			delete(known, n)
		}
	}
	return out
}

// drop removes the series that have all these labels, from every family that has the labels at all.
func (m *Metrics) drop(labels prometheus.Labels) {
	for i, f := range families {
		has := 0
		for _, n := range f.Labels {
			if _, ok := labels[n]; ok {
				has++
			}
		}
		if has < len(labels) {
			continue
		}
		switch {
		case m.counters[i] != nil:
			m.counters[i].DeletePartialMatch(labels)
		case m.gauges[i] != nil:
			m.gauges[i].DeletePartialMatch(labels)
		case m.histograms[i] != nil:
			m.histograms[i].DeletePartialMatch(labels)
		}
	}
}
