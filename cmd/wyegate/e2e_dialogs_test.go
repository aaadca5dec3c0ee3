package main

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/wyegate/wyegate/internal/lbtest"
	"github.com/wyegate/wyegate/internal/sip"
)

// disturbances are what happens to the edge between two messages of one dialog.
var disturbances = []struct {
	name string
	do   func(c *cluster)
}{
	{"nothing", func(*cluster) {}},
	{"a reload", func(c *cluster) { c.reload(false) }},
	{"a restart by SIGKILL", func(c *cluster) {
		c.stop(syscall.SIGKILL)
		c.start()
	}},
	{"a server more", func(c *cluster) {
		extra := c.servers[len(c.servers)-1]
		c.write("wyegate.yaml", c.yaml(append(append([]*lbtest.Server(nil), c.servers[:3]...), extra)...))
		c.reload(false)
	}},
	{"another order of the servers", func(c *cluster) {
		c.write("wyegate.yaml", c.yaml(c.servers[2], c.servers[1], c.servers[0]))
		c.reload(false)
	}},
}

func branchOf(t *testing.T, m *lbtest.Message) string {
	t.Helper()
	v, _, err := sip.NextVia(m.Value(sip.Via))
	if err != nil {
		t.Fatal(err)
	}
	return string(v.Branch)
}

// at gives the server that has the dialog of a Call-ID, and the requests of a method that it saw.
func (c *cluster) at(t *testing.T, callID, method string) (server *lbtest.Server, seen []*lbtest.Message) {
	t.Helper()
	for _, s := range c.servers {
		for _, m := range s.Seen() {
			if m.CallIDText() == callID && m.MethodName() == method {
				if server != nil && server != s {
					t.Errorf("%s of %s reached %s and %s", method, callID, server.Name, s.Name)
				}
				server = s
				seen = append(seen, m)
			}
		}
	}
	return server, seen
}

// Every message of a dialog reaches the INVITE's server with the right branch, whichever side sends it, also after the
// edge was reloaded, killed and started again, or got another pool.
func TestDialogsStayAtTheirServer(t *testing.T) {
	for _, d := range disturbances {
		t.Run("after "+d.name, func(t *testing.T) {
			c := startCluster(t, 3, cluster{rules: withRules})
			extra, err := lbtest.NewServer("as9")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(extra.Close)
			servers := c.servers
			c.servers = append(servers[:3:3], extra)
			caller, err := lbtest.NewUA("caller", lbtest.Answer)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(caller.Close)
			ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
			defer cancel()
			p, err := caller.Dial("UDP", mustAddr(c.sip))
			if err != nil {
				t.Fatal(err)
			}
			ringing := c.ring(t, ctx, caller, p)
			held := c.unanswered(t, caller, p)
			var open []*lbtest.Dialog
			for i := range 12 {
				dl, m, err := caller.Invite(ctx, p, lbtest.InviteOptions{RequestURI: fmt.Sprintf("sip:room-%d@sip.example.net", i)})
				if err != nil || m.Status != 200 {
					t.Fatalf("INVITE: %v, %v", m, err)
				}
				open = append(open, dl)
			}
			c.eventually(5*time.Second, "the ACKs", func() error { // what a killed process had in its sockets is lost
				for _, dl := range open {
					if s, _ := c.at(t, dl.CallID, "ACK"); s == nil {
						return fmt.Errorf("%s has none", dl.CallID)
					}
				}
				return nil
			})
			d.do(c)
			for i, dl := range open {
				c.inDialog(t, ctx, i, dl, caller)
			}
			c.cancel(t, ctx, caller, p, ringing)
			c.retransmit(t, caller, p, held)
		})
	}
}

// inDialog sends requests of both sides through the edge and looks where they came in.
func (c *cluster) inDialog(t *testing.T, ctx context.Context, i int, d *lbtest.Dialog, caller *lbtest.UA) {
	t.Helper()
	server, invites := c.at(t, d.CallID, "INVITE")
	if server == nil || server.Name != d.Peer {
		t.Fatalf("%s: INVITE at %v, answered by %s", d.CallID, server, d.Peer)
	}
	if s, acks := c.at(t, d.CallID, "ACK"); s != server || len(acks) != 1 || branchOf(t, acks[0]) == branchOf(t, invites[0]) {
		t.Errorf("%s: %d ACKs at %v", d.CallID, len(acks), s)
	}
	for _, method := range []string{"INVITE", "UPDATE", "PRACK", "INFO"} {
		if m, err := d.Do(ctx, method); err != nil || m.Status != 200 || m.Header("X-Server") != server.Name {
			t.Fatalf("%s: %s in the dialog: %v, %v", d.CallID, method, m, err)
		}
	}
	back := server.DialogOf(d.CallID)
	out, err := server.Dial("UDP", mustAddr(c.sip))
	if err != nil {
		t.Fatal(err)
	}
	back.SetPath(out)
	if m, err := back.Do(ctx, "INVITE"); err != nil || m.Status != 200 || m.Header("X-Server") != caller.Name {
		t.Fatalf("%s: re-INVITE of the called side: %v, %v", d.CallID, m, err)
	}
	end := back
	if i%2 == 0 {
		end = d
	}
	if m, err := end.Bye(ctx); err != nil || m.Status != 200 {
		t.Fatalf("%s: BYE of %v: %v, %v", d.CallID, end == back, m, err)
	}
	if s, _ := c.at(t, d.CallID, "BYE"); i%2 == 0 && s != server {
		t.Errorf("%s: BYE at %v", d.CallID, s)
	}
}

// ring begins a call that nobody answers, so that it can be given up.
func (c *cluster) ring(t *testing.T, ctx context.Context, caller *lbtest.UA, p *lbtest.Path) *lbtest.Transaction {
	t.Helper()
	tr, err := caller.Start(p, caller.Branch(), "INVITE sip:ring-7@sip.example.net SIP/2.0", "Max-Forwards: 70", "From: <sip:a@b.example>;tag=r1",
		"To: <sip:ring-7@sip.example.net>", "Call-ID: ringing@caller", "CSeq: 1 INVITE", "Contact: <sip:a@"+caller.Addr.String()+">")
	if err != nil {
		t.Fatal(err)
	}
	select {
	case m := <-tr.Responses:
		if m.Status != 180 {
			t.Fatalf("%d instead of 180", m.Status)
		}
	case <-ctx.Done():
		t.Fatal("no 180")
	}
	return tr
}

// cancel gives the ringing call up: CANCEL and the ACK to its 487 have the branch of their INVITE.
func (c *cluster) cancel(t *testing.T, ctx context.Context, caller *lbtest.UA, p *lbtest.Path, invite *lbtest.Transaction) {
	t.Helper()
	lines := func(method string, to string) []string {
		return []string{
			method + " sip:ring-7@sip.example.net SIP/2.0", "Max-Forwards: 70", "From: <sip:a@b.example>;tag=r1", "To: " + to,
			"Call-ID: ringing@caller", "CSeq: 1 " + method,
		}
	}
	if err := caller.Send(p, caller.Build(p, invite.Branch, lines("CANCEL", "<sip:ring-7@sip.example.net>")...)); err != nil {
		t.Fatal(err)
	}
	var cancelled, ended bool
	for !cancelled || !ended {
		select {
		case m := <-invite.Responses:
			cancelled = cancelled || m.Status == 200 && m.MethodName() == "CANCEL"
			if m.Status == 487 {
				ended = true
				if err := caller.Send(p, caller.Build(p, invite.Branch, lines("ACK", string(m.Value(sip.To)))...)); err != nil {
					t.Fatal(err)
				}
			}
		case <-ctx.Done():
			t.Fatalf("200 to CANCEL: %v, 487: %v", cancelled, ended)
		}
	}
	server, invites := c.at(t, "ringing@caller", "INVITE")
	c.eventually(5*time.Second, "the ACK to the 487", func() error {
		if s, acks := c.at(t, "ringing@caller", "ACK"); s != server || len(acks) == 0 || branchOf(t, acks[0]) != branchOf(t, invites[0]) {
			return fmt.Errorf("%d ACKs at %v", len(acks), s)
		}
		return nil
	})
	if s, cancels := c.at(t, "ringing@caller", "CANCEL"); s != server || branchOf(t, cancels[0]) != branchOf(t, invites[0]) {
		t.Errorf("CANCEL at %v with another branch than its INVITE at %v", s, server)
	}
}

// unanswered sends a request of which the client will send copies.
func (c *cluster) unanswered(t *testing.T, caller *lbtest.UA, p *lbtest.Path) []byte {
	t.Helper()
	raw := caller.Build(p, caller.Branch(), "MESSAGE sip:room-3@sip.example.net SIP/2.0", "Max-Forwards: 70", "From: <sip:a@b.example>;tag=m1",
		"To: <sip:room-3@sip.example.net>", "Call-ID: copies@caller", "CSeq: 1 MESSAGE")
	if err := caller.Send(p, raw); err != nil {
		t.Fatal(err)
	}
	c.eventually(5*time.Second, "the first copy", func() error {
		if s, _ := c.at(t, "copies@caller", "MESSAGE"); s == nil {
			return fmt.Errorf("at no server")
		}
		return nil
	})
	return raw
}

// retransmit sends copies; each reaches the same server with the same branch.
func (c *cluster) retransmit(t *testing.T, caller *lbtest.UA, p *lbtest.Path, raw []byte) {
	t.Helper()
	for range 3 {
		if err := caller.Send(p, raw); err != nil {
			t.Fatal(err)
		}
	}
	c.eventually(5*time.Second, "three copies", func() error {
		_, seen := c.at(t, "copies@caller", "MESSAGE")
		if len(seen) < 4 {
			return fmt.Errorf("%d", len(seen))
		}
		for _, m := range seen {
			if branchOf(t, m) != branchOf(t, seen[0]) {
				t.Errorf("a copy has branch %s, the first had %s", branchOf(t, m), branchOf(t, seen[0]))
			}
		}
		return nil
	})
}
