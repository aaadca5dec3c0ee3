package obs

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var _ prometheus.Collector = (*Metrics)(nil)

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for i := range families {
		if m.descs[i] != nil {
			ch <- m.descs[i]
			continue
		}
		m.vec(family(i)).Describe(ch)
	}
}

func (m *Metrics) vec(f family) prometheus.Collector {
	switch {
	case m.counters[f] != nil:
		return m.counters[f]
	case m.gauges[f] != nil:
		return m.gauges[f]
	default:
		return m.histograms[f]
	}
}

// Collect implements prometheus.Collector: one State per scrape.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	m.scrape.Lock()
	defer m.scrape.Unlock()
	if state := m.state.Load(); state != nil {
		st := (*state)()
		m.count(&st)
		s := shower{m, ch}
		s.process(&st)
		for i := range st.Servers {
			s.server(&st.Servers[i])
		}
		s.pools(&st)
		s.websockets(&st)
	}
	for i := range families {
		if m.descs[i] == nil {
			m.vec(family(i)).Collect(ch)
		}
	}
}

// count brings counters up to date with packages that count by themselves.
func (m *Metrics) count(st *State) {
	m.add("", overloadRejections, st.SIPShed, "sip", OverloadCauses[0])
	m.add("", overloadRejections, st.SIPLeft, "sip", OverloadCauses[len(OverloadCauses)-1])
	for _, l := range st.Listeners {
		if !m.knows(l.Listener) {
			continue // its series went with it
		}
		m.gauges[listenerConnections].WithLabelValues(l.Listener, l.Transport).Set(float64(l.Connections))
		m.add(l.Listener, listenerAccepted, l.Accepted, l.Listener, l.Transport)
		for i, n := range l.ParseErrors {
			if n > 0 {
				m.add(l.Listener, sipParseErrors, n, l.Listener, ParseReasons[i])
			}
		}
		for i, n := range l.Handshakes {
			if n > 0 {
				m.add(l.Listener, tlsHandshakes, n, l.Listener, HandshakeResults[i])
			}
		}
		for i, n := range l.Shed {
			m.add(l.Listener, overloadRejections, n, l.Protocol, OverloadCauses[i])
		}
	}
}

func (m *Metrics) knows(listener string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.known.listeners[listener]
}

// add brings one counter up to date with what a listener counts by itself: several may share one series. A count that
// fell began anew.
func (m *Metrics) add(listener string, f family, n uint64, labels ...string) {
	name := listener + "\x00" + families[f].Name
	for _, l := range labels {
		name += "\x00" + l
	}
	last := m.taken[name]
	if n < last {
		last = 0
	}
	m.taken[name] = n
	m.counters[f].WithLabelValues(labels...).Add(float64(n - last))
}

// shower writes the metrics that are made from a State.
type shower struct {
	m  *Metrics
	ch chan<- prometheus.Metric
}

func (s shower) put(f family, v float64, labels ...string) {
	s.ch <- prometheus.MustNewConstMetric(s.m.descs[f], prometheus.GaugeValue, v, labels...)
}

func (s shower) process(st *State) {
	s.put(buildInfo, 1, st.Version, st.Revision, st.GoVersion)
	s.put(configReloadOK, bit(st.LastReloadOK))
	s.put(configReloadTime, seconds(st.LastReloadAt))
	s.put(configGeneration, float64(st.Generation))
	s.put(configUnconfirmed, bit(st.Unconfirmed))
	for name, end := range st.Certificates {
		s.put(tlsNotAfter, seconds(end), name)
	}
	for service, n := range st.EnumWaiting {
		s.put(enumWaiting, float64(n), service)
	}
	for proto, d := range st.OverloadDelay {
		s.put(overloadDelay, d.Seconds(), proto)
	}
}

func (s shower) server(v *ServerState) {
	s.put(serverUsable, bit(v.Usable), v.Pool, v.Server)
	s.put(serverWeight, v.Weight, v.Pool, v.Server)
	s.put(serverSlowStart, v.SlowStart, v.Pool, v.Server)
	s.put(serverPartitions, float64(v.Partitions), v.Pool, v.Server)
	s.put(sipDialogs, float64(v.Dialogs), v.Pool, v.Server)
	for _, w := range AdminStates {
		s.put(serverAdmin, bit(v.Admin == w), v.Pool, v.Server, w)
	}
	for proto, state := range v.Health {
		for _, w := range HealthStates {
			s.put(serverHealth, bit(state == w), v.Pool, v.Server, proto, w)
		}
	}
	if d := v.Drain; d != nil {
		s.put(drainDialogs, float64(d.Dialogs), v.Pool, v.Server)
		s.put(drainSessions, float64(d.Sessions), v.Pool, v.Server)
		s.put(drainWebsockets, float64(d.Websockets), v.Pool, v.Server)
		if !d.Deadline.IsZero() {
			s.put(drainDeadline, seconds(d.Deadline), v.Pool, v.Server)
		}
	}
}

func (s shower) pools(st *State) {
	for _, p := range st.Pools {
		s.put(poolPanic, bit(p.Panic), p.Pool)
		s.put(poolUsable, p.Usable, p.Pool)
	}
	for _, v := range st.Sites {
		s.put(siteServing, bit(v.Serving), v.Site)
	}
}

// websockets adds over pools: the family has no label for the pool, and two pools may each have a server of one name.
func (s shower) websockets(st *State) {
	type pair struct{ listener, server string }
	sum := map[pair]int{}
	for _, v := range st.Servers {
		for l, n := range v.Websockets {
			sum[pair{l, v.Server}] += n
		}
	}
	for i := range st.Listeners {
		if l := &st.Listeners[i]; l.Websockets > 0 {
			s.put(websockets, float64(l.Websockets), l.Listener, "")
		}
	}
	for p, n := range sum {
		s.put(websockets, float64(n), p.listener, p.server)
	}
}

func bit(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// seconds is a point in time as Prometheus writes it; 0 for none.
func seconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}
