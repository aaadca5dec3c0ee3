package resolver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// How long one resolver may take before the next one is asked.
const (
	perQuery     = 100 * time.Millisecond
	longestQuery = time.Second // of a patient client
)

// Client asks a list of resolvers, one after the other.
type Client struct {
	Resolvers []string      // host:port, in the order they are asked
	Source    netip.Addr    // local address of queries; zero: the kernel's choice
	Wait      time.Duration // for one resolver; 0: 100 ms

	heard   func(addr string) // told which resolver answered; nil: nobody asks
	patient bool              // round after round, with longer and longer waits, until the context ends
}

// errRefused says that a resolver answered, and that its answer says nothing.
var errRefused = errors.New("resolver: no answer of use")

// exchange asks for one name. The answer's code is NOERROR or NXDOMAIN; else there is an error: that of the last
// resolver. Truncated answers are asked for again over TCP.
func (c *Client) exchange(ctx context.Context, name string, qtype uint16) (*dns.Msg, error) {
	q := new(dns.Msg)
	q.SetQuestion(dns.Fqdn(name), qtype)
	q.SetEdns0(1232, false)
	wait := c.Wait
	if wait <= 0 {
		wait = perQuery
	}
	m, err := c.round(ctx, q, wait)
	for err != nil && c.patient && len(c.Resolvers) > 0 && !errors.Is(err, errRefused) {
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(perQuery): // a resolver that is down refuses at once
		}
		wait = min(2*wait, longestQuery)
		m, err = c.round(ctx, q, wait)
	}
	return m, err
}

// round asks all resolvers, one after the other.
func (c *Client) round(ctx context.Context, q *dns.Msg, wait time.Duration) (*dns.Msg, error) {
	err := errors.New("resolver: nobody to ask")
	for _, addr := range c.Resolvers {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		var m *dns.Msg
		if m, err = c.askOne(ctx, q, addr, wait); err == nil {
			if c.heard != nil {
				c.heard(addr)
			}
			return m, nil
		}
	}
	return nil, err
}

func (c *Client) askOne(ctx context.Context, q *dns.Msg, addr string, wait time.Duration) (*dns.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	m, err := c.over(ctx, "udp", q, addr)
	if err == nil && m.Truncated {
		m, err = c.over(ctx, "tcp", q, addr)
	}
	if err != nil {
		return nil, fmt.Errorf("resolver: %s: %w", addr, err)
	}
	if m.Rcode != dns.RcodeSuccess && m.Rcode != dns.RcodeNameError {
		return nil, fmt.Errorf("%w: %s says %s", errRefused, addr, dns.RcodeToString[m.Rcode])
	}
	return m, nil
}

// over asks by one transport and checks that the answer is to the question.
func (c *Client) over(ctx context.Context, network string, q *dns.Msg, addr string) (*dns.Msg, error) {
	q = q.Copy()
	q.Id = dns.Id()
	d := &net.Dialer{}
	if c.Source.IsValid() {
		if network == "udp" {
			d.LocalAddr = net.UDPAddrFromAddrPort(netip.AddrPortFrom(c.Source, 0))
		} else {
			d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(c.Source, 0))
		}
	}
	deadline, _ := ctx.Deadline()
	cl := dns.Client{Net: network, Dialer: d, Timeout: max(time.Until(deadline), time.Millisecond)}
	m, _, err := cl.ExchangeContext(ctx, q, addr)
	if err != nil {
		return nil, err
	}
	if len(m.Question) != 1 || m.Question[0].Qtype != q.Question[0].Qtype || !strings.EqualFold(m.Question[0].Name, q.Question[0].Name) {
		return nil, errRefused
	}
	return m, nil
}

// HostResolvers gives what a resolv.conf names, as host:port; an empty path stands for the host's own.
func HostResolvers(path string) ([]string, error) {
	if path == "" {
		path = "/etc/resolv.conf"
	}
	cfg, err := dns.ClientConfigFromFile(path)
	if err != nil {
		return nil, fmt.Errorf("resolver: %w", err)
	}
	out := make([]string, len(cfg.Servers))
	for i, s := range cfg.Servers {
		out[i] = net.JoinHostPort(s, cfg.Port)
	}
	return out, nil
}

// soaMinimum is how long a negative answer holds: the SOA's minimum or its own TTL, whichever is less (RFC 2308), at
// most the bound; without a SOA the bound.
func soaMinimum(m *dns.Msg, bound time.Duration) time.Duration {
	for _, rr := range m.Ns {
		if soa, ok := rr.(*dns.SOA); ok {
			return min(bound, time.Duration(min(soa.Minttl, soa.Hdr.Ttl))*time.Second)
		}
	}
	return bound
}

// minTTL is the least TTL of the answer's records.
func minTTL(rrs []dns.RR) time.Duration {
	ttl := uint32(1 << 31)
	for _, rr := range rrs {
		ttl = min(ttl, rr.Header().Ttl)
	}
	return time.Duration(ttl) * time.Second
}
