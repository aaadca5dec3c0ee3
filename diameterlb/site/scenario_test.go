package site

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wyegate/wyegate/diameterlb/policycluster"
	"github.com/wyegate/wyegate/internal/resolver"
)

// TestScenarios runs every file of testdata/diameter/policy in virtual time. The format is in its README.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("../../testdata/diameter/policy/*.scenario")
	if err != nil || len(files) < 25 {
		t.Fatalf("%d scenarios, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".scenario"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) { run(t, string(data)) })
		})
	}
}

// group is what a cluster and a pair have in common.
type group interface {
	Run(ctx context.Context) error
	Candidates(dst []*policycluster.Member, host string) []*policycluster.Member
	Status(ctx context.Context) (policycluster.Status, error)
}

// play is one scenario under way.
type play struct {
	*testing.T
	line    string
	peers   *fakePeers
	dns     *fakeDNS
	events  *fakeEvents
	cfg     Config
	cluster *policycluster.Cluster // the primary side
	pair    *Pair                  // nil without secondary
	group   group
	stop    func()
}

func run(t *testing.T, script string) {
	p := &play{T: t, peers: newFakePeers(), dns: &fakeDNS{began: time.Now()}, events: newFakeEvents()}
	began := time.Now()
	wants := 0
	for i, line := range strings.Split(script, "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		p.line = fmt.Sprintf("line %d %q", i+1, strings.TrimSpace(line))
		if words[0] == "cluster" {
			p.configure(words[1:])
			continue
		}
		at, err := time.ParseDuration(words[0])
		if err != nil {
			t.Fatalf("%s: %v", p.line, err)
		}
		if p.group == nil && (words[1] == "want" || at > 0) {
			p.start()
		}
		time.Sleep(time.Until(began.Add(at)))
		synctest.Wait()
		if words[1] == "want" {
			wants++
		}
		p.step(words[1], words[2:])
		synctest.Wait()
	}
	if wants == 0 {
		t.Fatal("the scenario wants nothing")
	}
	p.stop()
}

// configure reads key=value; durations, numbers, words.
func (p *play) configure(pairs []string) {
	c := &p.cfg.Primary
	*c = policycluster.Config{
		Name: "pcrf", FQDN: "pcrf.test", MaxConnections: 1, MonitorLimit: 4, Reconnect: 10 * time.Second, StartWait: time.Second,
		DrainTimeout: 5 * time.Second, DryUpTimeout: 30 * time.Second, Pinning: true, TooBusy: 5, FullFor: time.Second,
		RechooseAfter: time.Minute, ShortageRetry: 10 * time.Second, RevertHold: 300 * time.Second, Seed: 1, Events: p.events,
		DNS: resolver.WatchConfig{SRV: "_diameter._tcp.pcrf.test", Query: p.dns.query}, HighestWeight: true,
	}
	p.cfg.Sites, p.cfg.RevertHold, p.cfg.SplitWindow, p.cfg.StartWait = [2]string{"ams", "fra"}, 300*time.Second, time.Minute, time.Second
	for _, pair := range pairs {
		key, value, _ := strings.Cut(pair, "=")
		n, _ := strconv.Atoi(value)
		d, _ := time.ParseDuration(value)
		switch key {
		case "selection":
			if value == "random" {
				c.Selection, c.Share, c.KeepRemoved = policycluster.Random, policycluster.RoundRobin, true
			}
		case "max":
			c.MaxConnections = n
		case "monitor":
			c.MonitorLimit = n
		case "max_timeouts":
			c.MaxTimeouts = n
		case "str_max_timeouts":
			c.STRMaxTimeouts = n
		case "mode":
			c.Mode = mode(value)
		case "revert":
			c.Revert = value == "auto"
			p.cfg.ManualRevert = value == "manual"
		case "revert_hold":
			c.RevertHold, p.cfg.RevertHold = d, d
		case "port":
			c.Port, c.PortAlways = uint16(n), true
		case "address":
			c.FQDN, c.DNS = "", resolver.WatchConfig{}
			c.Addresses = addresses(value)
		case "secondary":
			p.cfg.Secondary = *c
			p.cfg.Secondary.FQDN, p.cfg.Secondary.DNS = "", resolver.WatchConfig{}
			p.cfg.Secondary.Addresses = addresses(value)
		case "warm":
			p.cfg.Warm = true
		case "check":
			p.cfg.Check = map[string]Check{"strict": Strict, "host": Host, "off": Off}[value]
		case "rechoose_after":
			c.RechooseAfter = d
		case "suspect":
			c.SuspectStays = value == "stays"
		case "pinning":
			c.Pinning = value != "false"
		case "cache":
			c.Cache = &fakeCache{}
		default:
			p.Fatalf("%s: unknown key %s", p.line, key)
		}
	}
}

func mode(word string) policycluster.Mode {
	return policycluster.Mode(slices.Index(policycluster.Modes[:], word))
}

func addresses(list string) (out []netip.AddrPort) {
	for _, a := range strings.Split(list, ",") {
		out = append(out, netip.AddrPortFrom(netip.MustParseAddr(a), 3868))
	}
	return out
}

func (p *play) start() {
	if len(p.cfg.Secondary.Addresses) > 0 {
		p.pair = New(p.cfg, p.peers)
		p.cluster, p.group = p.pair.Side(0), p.pair
	} else {
		p.cluster = policycluster.New(p.cfg.Primary, p.peers)
		p.group = p.cluster
	}
	ctx, cancel := context.WithCancel(p.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = p.group.Run(ctx) }()
	p.stop = func() { cancel(); <-ended }
}

// step is one line that changes something, or that wants something.
func (p *play) step(verb string, args []string) {
	switch verb {
	case "dns":
		p.zone(args)
	case "peer":
		p.peers.mu.Lock()
		how := strings.Join(args[1:], " ")
		if what, after, ok := strings.Cut(how, " after "); ok {
			how = what
			p.peers.after[args[0]], _ = time.ParseDuration(after)
		}
		p.peers.how[args[0]] = how
		p.peers.mu.Unlock()
	case "fin", "rst", "dpr":
		p.peers.lose(args[0], nil, policycluster.Loss{Cause: policycluster.Closed, Detail: strings.ToUpper(verb)})
	case "watchdog":
		p.peers.lose(args[0], nil, policycluster.Loss{Cause: policycluster.DWRTimeouts})
	case "timeout", "str", "dwr":
		kind := map[string]policycluster.Kind{"timeout": policycluster.Request, "str": policycluster.STR, "dwr": policycluster.DWR}[verb]
		for range count(args) {
			p.member(args[0]).TimedOut(kind)
		}
	case "answer":
		p.member(args[0]).Answered(policycluster.Request)
	case "suspect":
		p.member(args[0]).Suspected()
	case "recover":
		p.member(args[0]).Recovered()
	case "busy":
		for range count(args) {
			p.member(args[0]).Result(true)
		}
	case "full":
		p.member(args[0]).Full(args[1] == "on")
	case "pending":
		n, _ := strconv.Atoi(args[1])
		p.member(args[0]).Pending.Store(int64(n))
	case "serves":
		p.pair.Heard(p.member(args[0]), time.Now())
	case "restart":
		p.stop()
		p.group, p.peers.members = nil, map[string]*policycluster.Member{}
		p.start()
	case "do":
		p.command(args)
	case "want":
		p.want(args)
	default:
		p.Fatalf("%s: unknown verb %s", p.line, verb)
	}
}

func (p *play) member(at string) *policycluster.Member {
	m := p.peers.member(at)
	if m == nil {
		p.Fatalf("%s: %s is not connected", p.line, at)
	}
	return m
}

// count reads xN.
func count(args []string) int {
	if len(args) < 2 {
		return 1
	}
	n, _ := strconv.Atoi(strings.TrimPrefix(args[1], "x"))
	return n
}

// zone reads "300 srv 10/60/A 20/0/B", "60 a A B" or "fail".
func (p *play) zone(args []string) {
	if args[0] == "fail" {
		p.dns.answer(resolver.Set{}, errServfail)
		return
	}
	ttl, _ := strconv.Atoi(args[0])
	set := resolver.Set{TTL: time.Duration(ttl) * time.Second, SRV: args[1] == "srv"}
	if len(args) == 2 {
		p.dns.answer(resolver.Set{}, fmt.Errorf("%w: pcrf.test", resolver.ErrEmptySet))
		return
	}
	for _, a := range args[2:] {
		t := resolver.Target{Host: "pcrf.test"}
		parts := strings.Split(a, "/")
		if set.SRV {
			prio, _ := strconv.Atoi(parts[0])
			weight, _ := strconv.Atoi(parts[1])
			t = resolver.Target{Host: "ps-" + parts[2], Port: 3868, Priority: uint16(prio), Weight: uint16(weight)}
			parts = parts[2:]
		}
		for _, one := range parts {
			t.Addrs = append(t.Addrs, netip.MustParseAddr(one))
		}
		set.Targets = append(set.Targets, t)
	}
	p.dns.answer(set, nil)
}

func (p *play) command(args []string) {
	ctx := p.Context()
	var err error
	refused := args[len(args)-1] == "refused"
	if refused {
		args = args[:len(args)-1]
	}
	switch args[0] {
	case "refresh":
		_, err = p.cluster.Refresh(ctx)
	case "failover":
		var to netip.AddrPort
		if len(args) > 1 {
			to = netip.AddrPortFrom(netip.MustParseAddr(args[1]), 3868)
		}
		_, err = p.cluster.Failover(ctx, to)
	case "mode":
		_, _, err = p.cluster.SetMode(ctx, mode(args[1]), len(args) > 2)
	case "resize":
		p.cfg.Primary.MaxConnections, _ = strconv.Atoi(args[1])
		err = p.cluster.Update(ctx, p.cfg.Primary)
	case "activate":
		p.cluster.Activate()
	case "revert":
		_, err = p.pair.Revert(ctx)
	case "prefer":
		_, err = p.pair.Prefer(ctx, args[1])
	default:
		p.Fatalf("%s: unknown command", p.line)
	}
	if (err != nil) != refused {
		p.Errorf("%s: %v", p.line, err)
	}
}
