package policycluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wyegate/wyegate/internal/obs"
	"github.com/wyegate/wyegate/internal/resolver"
)

// dnsMajor is how long a name may fail before the event is major (diameter.md 13.2), dnsMinor how often.
const (
	dnsMajor = 15 * time.Minute
	dnsMinor = 3
)

// names is what a cluster knows of its DNS name, with what the last events left to report.
type names struct {
	set      resolver.Set
	servers  []server
	have     bool
	at       time.Time // of the last good answer
	askedAt  time.Time // of the last answer or failure
	failures int
	failedAt time.Time // when the last failover had its cause, until the view tells the message path
	since    time.Time // of the first failure in a row
	result   string    // ok, or why it failed
	next     time.Time
	reason   string // of the next query: ttl, backoff, shortage, refresh
	asking   string // of the query under way
	history  []Answer
	waiting  []chan Answer
	downs    []*slot
	raised   obs.Severity
	short    bool
}

// Answer is one line of `policy dns` under LAST ANSWERS.
type Answer struct {
	At      time.Time `json:"at"`
	Result  string    `json:"result"` // "4 records, TTL 300", "SERVFAIL"
	Change  string    `json:"change"` // "none", "+10.30.7.11 -10.30.7.9", "kept 4 cached records, next after 5 s"
	Failed  bool      `json:"failed"`
	Records int       `json:"records"`
}

func (n *names) majorAt() time.Time {
	if n.failures == 0 || n.raised == obs.Major {
		return time.Time{}
	}
	return n.since.Add(dnsMajor)
}

// watched is the configuration of the query goroutine. Random does its own timing: it asks when servers are missing, not
// when a TTL ends (diameter.md 5, table).
func (c *Cluster) watched() resolver.WatchConfig {
	w := c.cfg.DNS
	w.Learnt = func(s resolver.Set) { c.post(func(now time.Time) { c.learnt(s, now) }) }
	w.Failed = func(err error, again time.Duration) { c.post(func(now time.Time) { c.failed(err, again, now) }) }
	w.Asked = c.cfg.Selection == Random
	return w
}

// query asks at once; reason is shown while the answer is awaited.
func (c *Cluster) query(reason string) {
	if c.watch != nil {
		c.names.asking = reason
		c.watch.Refresh()
	}
}

// learnt takes a good answer over.
func (c *Cluster) learnt(set resolver.Set, now time.Time) {
	n := &c.names
	c.Queries[0].Add(1)
	list := c.cfg.servers(set)
	records := len(list)
	n.note(Answer{At: now, Records: records, Result: fmt.Sprintf("%d records, TTL %d", records, int(set.TTL.Seconds())),
		Change: difference(n.servers, list)})
	changed := !n.have || !n.set.Same(set) || len(c.slots) == 0
	n.set, n.servers, n.have, n.at, n.askedAt, n.failures, n.result = set, list, true, now, now, 0, "ok"
	n.next, n.reason, n.asking = now.Add(set.TTL), "ttl", ""
	c.clearDNS()
	if c.cfg.Cache != nil {
		c.cfg.Cache.Store(set, now)
	}
	if c.cfg.Selection == Random {
		n.next, n.reason = time.Time{}, ""
		for _, s := range c.slots {
			s.listed = slices.ContainsFunc(list, s.matches)
		}
		c.replaceDefunct(now)
	} else if changed {
		c.adopt(list, now)
	}
}

// failed keeps what there is (diameter.md 5.1).
func (c *Cluster) failed(err error, again time.Duration, now time.Time) {
	n := &c.names
	c.Queries[1].Add(1)
	if n.failures == 0 {
		n.since = now
	}
	n.failures++
	n.askedAt, n.result, n.asking = now, reasonOf(err), ""
	change := "no server known"
	if len(n.servers) > 0 {
		change = fmt.Sprintf("kept %d cached records", len(n.servers))
	}
	if again > 0 {
		n.next, n.reason = now.Add(again), "backoff"
		change += fmt.Sprintf(", next after %d s", int(again.Seconds()))
	}
	n.note(Answer{At: now, Result: n.result, Change: change, Failed: true, Records: len(n.servers)})
	for _, s := range c.slots {
		if s.redial {
			s.retryAt = now // nobody will replace it
		}
	}
}

// note adds to the history and tells those who wait for a query.
func (n *names) note(a Answer) {
	if n.history = append(n.history, a); len(n.history) > maxHistory {
		n.history = slices.Delete(n.history, 0, 1)
	}
	for _, ch := range n.waiting {
		ch <- a
	}
	n.waiting = nil
}

// reasonOf is a failure in a few words.
func reasonOf(err error) string {
	switch {
	case errors.Is(err, resolver.ErrEmptySet):
		return "no address"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	}
	text := err.Error()
	for _, code := range []string{"SERVFAIL", "REFUSED", "NXDOMAIN", "NOTIMP", "FORMERR"} {
		if strings.Contains(text, code) {
			return code
		}
	}
	if strings.Contains(text, "timeout") {
		return "timeout"
	}
	return text[strings.LastIndex(text, ": ")+1:]
}

// difference lists addresses that came and went.
func difference(old, now []server) string {
	var parts []string
	collect := func(sign string, in, without []server) {
		for _, s := range in {
			for _, a := range s.addrs {
				if !slices.ContainsFunc(without, func(o server) bool { return slices.Contains(o.addrs, a) }) {
					parts = append(parts, sign+a.Addr().String())
				}
			}
		}
	}
	collect("+", now, old)
	collect("-", old, now)
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, " ")
}
