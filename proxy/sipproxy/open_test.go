package sipproxy

import "testing"

// What a node that leaves waits for (Proxy.Open): a transaction without its final response, and no longer one that is
// remembered only to answer repetitions.
func TestOpenCountsWhatWaitsForItsFinal(t *testing.T) {
	for _, server := range []string{"udp", "tcp"} {
		b := newBed(t, bedOptions{servers: []string{"as1 " + server + " 10.20.1.11:5060"}})
		out := b.one(b.in(aliceAt, alice("open").request("OPTIONS", 1)))
		if n := b.p.Open(); n != 1 {
			t.Errorf("%s: %d open while the server is asked", server, n)
		}
		b.from(out, respond(out.text, 200, "s1"))
		if n := b.p.Open(); n != 0 {
			t.Errorf("%s: %d open behind the answer", server, n)
		}
	}
}
