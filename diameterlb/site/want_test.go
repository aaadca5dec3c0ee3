package site

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wyegate/wyegate/diameterlb/policycluster"
)

// want compares; a wish that is not met fails the scenario and lets it go on.
func (p *play) want(args []string) {
	st, err := p.group.Status(p.Context())
	if err != nil {
		p.Fatalf("%s: %v", p.line, err)
	}
	var got string
	wish := strings.Join(args[1:], " ")
	switch args[0] {
	case "active", "standby", "inactive", "unused", "suspect":
		list := strings.Fields(wish)
		slices.Sort(list)
		if wish = strings.Join(list, " "); wish == "none" {
			wish = ""
		}
		got = inState(st, args[0])
	case "count": // count active 3
		got = args[1] + " " + strconv.Itoa(len(strings.Fields(inState(st, args[1]))))
	case "change":
		got = args[1] + " " + changeOf(st, args[1])
	case "queries":
		p.dns.mu.Lock()
		got = strconv.Itoa(p.dns.queries)
		p.dns.mu.Unlock()
	case "asked": // asked 0s 5s 15s: since the start
		p.dns.mu.Lock()
		got = since(p.dns.at)
		p.dns.mu.Unlock()
	case "opened":
		p.peers.mu.Lock()
		got = args[1] + " " + strconv.Itoa(p.peers.opened[args[1]])
		p.peers.mu.Unlock()
	case "closed":
		p.peers.mu.Lock()
		got = args[1] + " " + p.peers.closed[args[1]]
		p.peers.mu.Unlock()
	case "released":
		p.peers.mu.Lock()
		got = strconv.Itoa(p.peers.freed)
		p.peers.mu.Unlock()
	case "failovers":
		got = p.failovers(args[1])
	case "replacements":
		got = args[1] + " " + strconv.Itoa(int(p.cluster.Replacements[cause(args[1])].Load()))
	case "event":
		p.events.mu.Lock()
		got = args[1] + " " + strconv.Itoa(p.events.count[args[1]])
		p.events.mu.Unlock()
	case "raised":
		p.events.mu.Lock()
		got = p.raised(args[1])
		p.events.mu.Unlock()
	case "route": // route [pin=HOST] A B
		host, rest, _ := strings.Cut(wish+" ", " ")
		if !strings.HasPrefix(host, "pin=") {
			host, rest = "", wish
		}
		wish = strings.TrimSpace(rest)
		got = names(p.group.Candidates(nil, strings.TrimPrefix(host, "pin=")))
	case "site":
		got = p.pair.Serving()
	case "sites":
		var parts []string
		for _, s := range st.Sites {
			parts = append(parts, s.Site+"="+s.State)
		}
		got = strings.Join(parts, " ")
	case "switches":
		got = args[1] + " " + args[2] + " " + p.switches(args[1], args[2])
	case "splits":
		got = strconv.Itoa(int(p.pair.Splits.Load()))
	case "dns":
		got = strings.Join([]string{st.DNS.Result, st.DNS.Reason, strconv.Itoa(st.DNS.Failures)}, " ")
	default:
		p.Fatalf("%s: unknown wish", p.line)
	}
	if strings.TrimSpace(got) != wish {
		p.Errorf("%s: got %q", p.line, got)
	}
}

func inState(st policycluster.Status, state string) string {
	var list []string
	for _, s := range st.Servers {
		if s.State == state {
			list = append(list, plain(s.Address))
		}
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

// plain leaves the port out when it is the usual one.
func plain(address string) string { return strings.TrimSuffix(address, ":3868") }

func changeOf(st policycluster.Status, at string) string {
	for _, s := range st.Servers {
		if plain(s.Address) == at {
			return s.LastChange.String()
		}
	}
	return "not listed"
}

func since(at []time.Duration) string {
	var out []string
	for _, d := range at {
		out = append(out, d.Round(time.Second).String())
	}
	return strings.Join(out, " ")
}

func cause(word string) policycluster.Cause {
	for c := range policycluster.Causes {
		if c.String() == word {
			return c
		}
	}
	panic("unknown cause " + word)
}

// failovers gives "CAUSE N", or for "all" the sum.
func (p *play) failovers(word string) string {
	if word != "all" {
		return word + " " + strconv.Itoa(int(p.cluster.Failovers[cause(word)].Load()))
	}
	n := 0
	for c := range policycluster.Causes {
		n += int(p.cluster.Failovers[c].Load())
	}
	return "all " + strconv.Itoa(n)
}

func (p *play) switches(site, word string) string {
	i := slices.Index(p.cfg.Sites[:], site)
	for c := range Causes {
		if c.String() == word {
			return strconv.Itoa(int(p.pair.Switches[i][c].Load()))
		}
	}
	return "unknown cause"
}

// raised gives "NAME SEVERITY" of a condition that holds, else "NAME no".
func (p *play) raised(name string) string {
	for key, sev := range p.events.open {
		if n, _, _ := strings.Cut(key, " "); n == name {
			return name + " " + string(sev)
		}
	}
	return name + " no"
}

func names(list []*policycluster.Member) string {
	var out []string
	for _, m := range list {
		out = append(out, plain(m.Address().String()))
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, " ")
}
