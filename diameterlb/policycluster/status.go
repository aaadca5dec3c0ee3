package policycluster

import (
	"context"
	"net/netip"
	"slices"
	"time"
)

// Status is one cluster as `policy show` has it (diameter.md 11.2).
type Status struct {
	Cluster   string         `json:"cluster"`
	Name      string         `json:"name"`
	Selection string         `json:"selection"`
	Mode      string         `json:"mode"`
	Want      int            `json:"want"`
	Resolved  int            `json:"resolved"`
	Connected int            `json:"connected"`
	Pinning   bool           `json:"pinning"`
	Servers   []ServerStatus `json:"servers"`
	Sites     []SiteStatus   `json:"sites"`
	DNS       *DNSStatus     `json:"dns"` // null: literal addresses

	Since time.Time `json:"-"` // of the active role, or of its loss
}

// ServerStatus is one member.
type ServerStatus struct {
	Address    string       `json:"address"`
	Identity   string       `json:"identity"`
	Priority   *uint16      `json:"priority"` // null: random, or the secondary of a site pair
	Weight     *uint16      `json:"weight"`
	Rank       int          `json:"rank"` // 0: none
	State      string       `json:"state"`
	Since      time.Time    `json:"since"`
	Sessions   int64        `json:"sessions"`
	Pending    int64        `json:"pending"`
	Timeouts   TimeoutCount `json:"timeouts"`
	LastChange Change       `json:"last_change"`

	Target string `json:"target,omitempty"` // name of the SRV record
}

// TimeoutCount has the time-outs in a row.
type TimeoutCount struct {
	Request int32 `json:"request"`
	DWR     int32 `json:"dwr"`
	STR     int32 `json:"str"`
}

// SiteStatus is one site of a pair.
type SiteStatus struct {
	Site       string     `json:"site"`
	Role       string     `json:"role"`
	State      string     `json:"state"`
	Since      time.Time  `json:"since"`
	RevertAt   *time.Time `json:"revert_at"`
	LastChange string     `json:"last_change,omitempty"`
}

// DNSStatus is the state of the name; times are whole seconds, as in the text.
type DNSStatus struct {
	Query    string `json:"query"`
	Type     string `json:"type"` // SRV, or "A AAAA"
	Result   string `json:"result"`
	Records  int    `json:"records"`
	TTL      int    `json:"ttl"`
	Age      int    `json:"age"`  // of the last good answer; -1: there was none
	Next     int    `json:"next"` // until the next query; -1: none is planned
	Reason   string `json:"reason"`
	Failures int    `json:"failures"`

	From      string   `json:"from,omitempty"`
	Took      int64    `json:"took_ms"`
	Unused    int      `json:"unused"` // addresses nobody uses, of selection random
	Resolvers []string `json:"resolvers"`
	History   []Answer `json:"history,omitempty"`
	// Table has the servers of the last answer with their use; of `policy dns` only.
	Table []Record `json:"table,omitempty"`
}

// Record is one server of the last answer.
type Record struct {
	Rank     int    `json:"rank"`
	Priority uint16 `json:"priority"`
	Weight   uint16 `json:"weight"`
	Target   string `json:"target"`
	Port     uint16 `json:"port"`
	Address  string `json:"address"`
	Use      string `json:"use"` // state of the member; unused; "rested 48s"
}

// Status gives the state of the moment.
func (c *Cluster) Status(ctx context.Context) (Status, error) {
	var st Status
	err := c.do(ctx, func(now time.Time) {
		c.settle(now)
		st = c.status(now)
	})
	return st, err
}

func (c *Cluster) status(now time.Time) Status {
	st := Status{
		Cluster: c.name, Name: c.label(), Selection: c.cfg.Selection.String(), Mode: c.cfg.Mode.String(), Want: c.cfg.wanted(),
		Resolved: len(c.names.servers), Pinning: c.cfg.Pinning, Servers: []ServerStatus{}, Sites: []SiteStatus{}, Since: c.none,
	}
	for _, s := range c.slots {
		one := s.status()
		if c.cfg.Selection == Failover {
			p, w := s.priority, s.weight
			one.Priority, one.Weight, one.Rank = &p, &w, s.rank
		}
		if s.conn == connected {
			st.Connected++
		}
		if s.state == Active && (st.Since.IsZero() || s.since.After(st.Since)) {
			st.Since = s.since
		}
		st.Servers = append(st.Servers, one)
	}
	if c.watch != nil {
		st.DNS = c.dns(now)
	}
	return st
}

// label is the FQDN, else the identity, else the name.
func (c *Cluster) label() string {
	if c.cfg.FQDN != "" {
		return c.cfg.FQDN
	}
	if c.cfg.Expect.Host != "" {
		return c.cfg.Expect.Host
	}
	for _, s := range c.slots {
		if id, ok := s.Identity(); ok {
			return id.Host
		}
	}
	return c.name
}

func (s *slot) status() ServerStatus {
	id, _ := s.Identity()
	return ServerStatus{
		Address: s.Address().String(), Identity: id.Host, State: s.state.String(), Since: s.since, Sessions: s.Sessions.Load(),
		Pending: s.Pending.Load(), LastChange: s.change, Target: s.target,
		Timeouts: TimeoutCount{s.timeouts[Request].Load(), s.timeouts[DWR].Load(), s.timeouts[STR].Load()},
	}
}

func (c *Cluster) dns(now time.Time) *DNSStatus {
	n := &c.names
	d := &DNSStatus{
		Query: c.cfg.FQDN, Type: "A AAAA", Result: n.result, Records: len(n.servers), Age: -1, Next: -1, Reason: n.reason,
		Failures: n.failures, From: n.set.From, Took: n.set.Took.Milliseconds(), Resolvers: c.cfg.DNS.Client.Resolvers,
		TTL: int(n.set.TTL.Seconds()), History: slices.Clone(n.history),
	}
	if c.cfg.Selection == Failover && c.cfg.DNS.SRV != "" && (n.set.SRV || !n.have) {
		d.Query, d.Type = c.cfg.DNS.SRV, "SRV"
	}
	if n.have {
		d.Age = int(now.Sub(n.at).Seconds())
	}
	next := n.next
	if c.cfg.Selection == Random {
		next, d.Reason = c.askAt, ""
		d.Unused = len(c.unused(now))
		if !next.IsZero() {
			d.Reason = "shortage"
		}
	}
	if n.asking != "" {
		next, d.Reason = now, n.asking
	}
	if !next.IsZero() {
		d.Next = int(max(next.Sub(now), 0).Round(time.Second).Seconds())
	}
	return d
}

// DNS is what `policy dns` shows (diameter.md 11.3); nil for literal addresses.
func (c *Cluster) DNS(ctx context.Context) (*DNSStatus, error) {
	var d *DNSStatus
	err := c.do(ctx, func(now time.Time) {
		if c.watch == nil {
			return
		}
		d = c.dns(now)
		for i, n := range c.names.servers {
			r := Record{Rank: i + 1, Priority: n.priority, Weight: n.weight, Target: n.target, Address: n.addrs[0].Addr().String(),
				Port: n.addrs[0].Port(), Use: c.use(n, now)}
			d.Table = append(d.Table, r)
		}
	})
	return d, err
}

func (c *Cluster) use(n server, now time.Time) string {
	for _, s := range c.slots {
		if s.matches(n) {
			return s.state.String()
		}
	}
	if until := c.rested[n.addrs[0].String()]; until.After(now) {
		return "rested " + until.Sub(now).Round(time.Second).String()
	}
	return Unused.String()
}

// Members are the servers of the moment by address, for counters.
func (c *Cluster) Members(ctx context.Context) (map[netip.AddrPort]*Member, error) {
	list := map[netip.AddrPort]*Member{}
	err := c.do(ctx, func(time.Time) {
		for _, s := range c.slots {
			list[s.Address()] = s.Member
		}
	})
	return list, err
}
