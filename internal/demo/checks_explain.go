package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"github.com/wyegate/wyegate/admin"
)

// decision is what explain foretells of a message and the access log tells afterwards.
type decision struct {
	App    string `json:"app"`
	Key    string `json:"key"`
	Source string `json:"key_source"`
	Rule   string `json:"rule"`
	Server string `json:"server"`
}

// line is what a line of the access log is known by.
type line struct {
	decision

	Method string `json:"method"`
	URI    string `json:"uri"`
	CallID string `json:"call_id"`
}

// explain asks where messages would go, sends them, and compares: with the server that answered, and with what the edge
// wrote into its access log.
func (c *checks) explain(ctx context.Context) (outcome, error) {
	o := outcome{title: "explain says what traffic did"}
	seen := make([]*visitor, 8) // with a cookie of the help pages
	for i := range seen {
		seen[i] = &visitor{browsers: c.web, cookies: map[string]string{}}
		if _, err := seen[i].get(ctx, page{domain: webDomain, target: "/help"}); err != nil {
			return o, err
		}
	}
	ids, said := make([]string, explained), make([]decision, explained)
	err := each(ctx, explained, func(i int) error {
		var did string
		var err error
		if i%2 == 0 {
			ids[i], said[i], did, err = c.explainCall(ctx, i/2)
		} else {
			ids[i], said[i], did, err = c.explainPage(ctx, i/2, seen)
		}
		if err == nil && (said[i].Server != did || did == "") {
			err = fmt.Errorf("explain said %q, traffic went to %q", said[i].Server, did)
		}
		return err
	})
	logged, missing := c.logged(ctx, ids)
	good := 0
	err = errors.Join(err, missing)
	for i, id := range ids {
		if logged[id] == said[i] {
			good++
		} else if err == nil {
			err = fmt.Errorf("%s: explain said %+v, the access log has %+v", id, said[i], logged[id])
		}
	}
	o.detail = fmt.Sprintf("%d of %d messages", good, explained)
	o.facts = o.detail + " by answer and access log"
	return o, err
}

// logged waits until the access log has a line for each id: a Call-ID, or a request target.
func (c *checks) logged(ctx context.Context, ids []string) (map[string]decision, error) {
	want := map[string]bool{}
	for _, id := range ids {
		want[id] = true
	}
	var found map[string]decision
	var failed error
	err := c.edge.await(ctx, func() bool {
		found, failed = readLog(filepath.Join(c.edge.dir, accessName), want)
		return failed != nil || len(found) == len(want)
	})
	if err != nil {
		err = fmt.Errorf("the access log has %d of %d lines: %w", len(found), len(want), err)
	}
	return found, errors.Join(failed, err)
}

// readLog takes the lines of initial requests out of an access log. The last line may be half written.
func readLog(path string, want map[string]bool) (map[string]decision, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	found := map[string]decision{}
	for r := bufio.NewReader(f); ; {
		text, err := r.ReadBytes('\n')
		if err != nil {
			return found, nil
		}
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			return nil, fmt.Errorf("access log: %w", err)
		}
		switch {
		case l.Method == "INVITE" && want[l.CallID]:
			found[l.CallID] = l.decision
		case want[l.URI]:
			found[l.URI] = l.decision
		}
	}
}

func foretold(x *admin.Explanation) decision {
	return decision{App: x.Application, Key: x.Key, Source: x.Source, Rule: x.Rule, Server: x.Server}
}

// explainCall takes calls of every kind: by the room, by the asserted user of an originating leg, by the default key.
func (c *checks) explainCall(ctx context.Context, i int) (id string, said decision, did string, err error) {
	p := c.phones.pick(i)
	room, more := fmt.Sprintf("salon-%d", i), []string(nil)
	key := room
	switch i % 4 {
	case 1:
		key = fmt.Sprintf("bob-%d", i)
		more = []string{"Route: <sip:" + c.edge.address() + ";lr;call=orig>", "P-Asserted-Identity: <sip:" + key + "@example.net>"}
	case 3:
		room, key = "", ""
	}
	out, err := p.invite(room, more...)
	if err != nil {
		return id, said, did, err
	}
	listener := "sip-udp"
	if p.conn != nil {
		listener = "sip-tcp"
	}
	x, err := c.edge.engine.Explain(ctx, admin.ExplainRequest{Listener: listener, Source: p.local, SIP: out.text})
	if err != nil {
		return id, said, did, err
	}
	if key != "" && x.Key != key {
		return id, said, did, fmt.Errorf("explain found the key %q, not %q", x.Key, key)
	}
	k, err := p.place(ctx, out)
	if err != nil {
		return id, said, did, err
	}
	_, err = k.bye(ctx)
	return k.id, foretold(x), k.server, err
}

// explainPage takes pages of every kind: three places of the room's name, and a session that has its cookie. Each has a
// target of its own, by which its line is found.
func (c *checks) explainPage(ctx context.Context, i int, seen []*visitor) (id string, said decision, did string, err error) {
	cookies := map[string]string{}
	room := fmt.Sprintf("salon-%d", i)
	p := page{domain: webDomain, target: fmt.Sprintf("/room?page=%d", i)}
	switch i % 4 {
	case 0:
		p.target += "&conf=" + room
	case 1:
		p.header = map[string]string{"X-Conference": room}
	case 2:
		cookies["conf"] = room
	case 3:
		// A copy: several messages have one visitor's cookies at a time.
		cookies, p.target = maps.Clone(seen[i%len(seen)].cookies), fmt.Sprintf("/help?page=%d", i)
	}
	v := &visitor{browsers: c.web, cookies: cookies}
	x, err := c.edge.engine.Explain(ctx, admin.ExplainRequest{Listener: "http", HTTP: p.text(v.cookieLine())})
	if err != nil {
		return id, said, did, err
	}
	did, err = v.get(ctx, p)
	return p.target, foretold(x), did, err
}
