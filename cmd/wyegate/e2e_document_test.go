package main

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/wyegate/wyegate/internal/lbtest"
)

const threeKinds = `    applications:
      - {name: conference, kind: converged, path_prefix: /room}
      - {name: help, kind: web, path_prefix: /help}
      - {name: trunk, kind: sip, host: [trunk.example.net]}
`

// invite makes one call and gives the server that took it; the call is ended.
func (c *cluster) invite(t *testing.T, caller *lbtest.UA, o lbtest.InviteOptions) string {
	t.Helper()
	p, err := caller.Dial("UDP", mustAddr(c.sip))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	d, m, err := caller.Invite(ctx, p, o)
	if err != nil || m.Status != 200 {
		t.Fatalf("INVITE: %v, %v", m, err)
	}
	if m, err = d.Bye(ctx); err != nil || m.Status != 200 {
		t.Fatalf("BYE: %v, %v", m, err)
	}
	return d.Peer
}

// The document "Converged Load Balancing Algorithms", sentence by sentence.
func TestConvergedLoadBalancingDocument(t *testing.T) {
	caller, err := lbtest.NewUA("caller", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(caller.Close)
	with := startCluster(t, 4, cluster{rules: withRules, apps: threeKinds, pool: fast})
	without := startCluster(t, 4, cluster{apps: threeKinds, pool: fast})
	sides := map[string]*cluster{"with a DCR file": with, "without": without}

	for name, c := range sides {
		t.Run("web "+name+": a new request is forwarded round robin", func(t *testing.T) {
			count := map[string]int{}
			for range 40 {
				count[c.page(t, "/help?conf=room-1")]++
			}
			for _, s := range c.servers {
				if count[s.Name] != 10 {
					t.Errorf("40 new requests went %v", count)
				}
			}
		})
		t.Run("web "+name+": the response that begins a session has sticky information, and later requests follow it", func(t *testing.T) {
			for range 8 {
				server, _, cookies := c.get(t, "/help?session=1")
				var sticky *http.Cookie
				for _, k := range cookies {
					if k.Name == "WGROUTE" {
						sticky = k
					}
				}
				if sticky == nil || sticky.Path != "/help" || !sticky.HttpOnly || sticky.SameSite != http.SameSiteLaxMode {
					t.Fatalf("sticky cookie %v", sticky)
				}
				for range 5 {
					if got := c.page(t, "/help", "Cookie", "WGROUTE="+sticky.Value); got != server {
						t.Fatalf("a session of %s was sent to %s", server, got)
					}
				}
			}
		})
		t.Run("web "+name+": a request to an application without session stays new", func(t *testing.T) {
			if _, _, cookies := c.get(t, "/help"); len(cookies) != 0 {
				t.Errorf("cookies %v", cookies)
			}
		})
		t.Run("sip "+name+": consistent hash", func(t *testing.T) {
			for i := range 20 {
				o := lbtest.InviteOptions{RequestURI: fmt.Sprintf("sip:trunk-%d@trunk.example.net", i)}
				if name == "without" {
					continue // from-tag and call-id are new for each call: nothing to compare
				}
				if a, b := c.invite(t, caller, o), c.invite(t, caller, o); a != b {
					t.Errorf("two calls with one key: %s and %s", a, b)
				}
			}
		})
		t.Run("sip "+name+": without a matching rule the key is from-tag,call-id", func(t *testing.T) {
			for i := range 20 {
				id, tag := fmt.Sprintf("doc-%s-%d@x", name[:4], i), fmt.Sprintf("t%d", i)
				p, err := caller.Dial("UDP", mustAddr(c.sip))
				if err != nil {
					t.Fatal(err)
				}
				// A tel URI in To has no user part for the rules: none matches.
				tr, err := caller.Start(p, caller.Branch(), "MESSAGE sip:x@sip.example.net SIP/2.0", "Max-Forwards: 70",
					"From: <sip:a@b.example>;tag="+tag, "To: <urn:service:test>", "Call-ID: "+id, "CSeq: 1 MESSAGE")
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				m, err := tr.Final(ctx)
				cancel()
				if err != nil {
					t.Fatal(err)
				}
				var place struct{ Server string }
				if err := c.api("/v1/keys/"+tag+id, &place); err != nil {
					t.Fatal(err)
				}
				if m.Header("X-Server") != place.Server {
					t.Errorf("key %s%s is at %s, the request went to %s", tag, id, place.Server, m.Header("X-Server"))
				}
			}
		})
	}
	t.Run("converged without a DCR file: HTTP is sticky round robin", func(t *testing.T) {
		count := map[string]int{}
		for range 40 {
			count[without.page(t, "/room?conf=room-1")]++
		}
		for _, s := range without.servers {
			if count[s.Name] != 10 {
				t.Errorf("40 new requests went %v", count)
			}
		}
	})
	t.Run("converged with a DCR file: the same key meets, whichever protocol asks", func(t *testing.T) {
		for i := range 50 {
			room := fmt.Sprintf("room-%d", i)
			call := with.invite(t, caller, lbtest.InviteOptions{RequestURI: "sip:" + room + "@sip.example.net"})
			if page := with.page(t, "/room?conf="+room); page != call {
				t.Errorf("%s: call at %s, page at %s", room, call, page)
			}
		}
	})
	t.Run("converged with a DCR file, no rule matches HTTP: remote host and port", func(t *testing.T) {
		used := map[string]bool{}
		for range 40 {
			http.DefaultClient.CloseIdleConnections() // a new connection is a new port, and a new key
			first := with.page(t, "/room")
			used[first] = true
			if again := with.page(t, "/room"); again != first {
				t.Errorf("one connection: %s, then %s", first, again)
			}
		}
		if len(used) < 3 {
			t.Errorf("40 connections used %v", used)
		}
	})
	t.Run("web: an assigned request goes elsewhere when its server is not healthy", func(t *testing.T) {
		server, _, cookies := with.get(t, "/help?session=1")
		var sticky string
		for _, k := range cookies {
			if k.Name == "WGROUTE" {
				sticky = k.Value
			}
		}
		for _, s := range with.servers {
			if s.Name == server {
				s.Close()
			}
		}
		got, status, fresh := with.get(t, "/help?session=1", "Cookie", "WGROUTE="+sticky)
		if status != 200 || got == server || got == "" {
			t.Fatalf("%d from %q while %s is dead", status, got, server)
		}
		moved := ""
		for _, k := range fresh {
			if k.Name == "WGROUTE" {
				moved = k.Value
			}
		}
		if moved == "" || moved == sticky {
			t.Fatal("the client was not told its new server")
		}
		if again := with.page(t, "/help", "Cookie", "WGROUTE="+moved); again != got {
			t.Errorf("moved to %s, then to %s", got, again)
		}
	})
}
