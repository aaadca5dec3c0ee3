package sipproxy

import (
	"strings"
	"testing"
)

// operations.md, rule 1: what traffic is refused with, explain says, and what traffic gets through it does not refuse.
func TestExplainRefusesWhatTrafficIsRefused(t *testing.T) {
	b := newBed(t, bedOptions{})
	lost := alice("ack")
	invite := lost.request("INVITE", 1)
	for name, text := range map[string]string{
		"sips over UDP":             strings.Replace(alice("a").request("INVITE", 1), "sip:team@ex.com", "sips:team@ex.com", 1),
		"Route sips over UDP":       strings.Replace(alice("b").request("INVITE", 1), "Max-Forwards", "Route: <sips:x.example;lr>\r\nMax-Forwards", 1),
		"no hops left":              strings.Replace(alice("c").request("INVITE", 1), "Max-Forwards: 70", "Max-Forwards: 0", 1),
		"no hops left, a user":      strings.Replace(alice("d").request("OPTIONS", 1), "Max-Forwards: 70", "Max-Forwards: 0", 1),
		"no hops left, for us":      strings.Replace(strings.Replace(alice("e").request("OPTIONS", 1), "Max-Forwards: 70", "Max-Forwards: 0", 1), "sip:team@ex.com", "sip:203.0.113.10", 1),
		"scheme":                    strings.Replace(alice("f").request("INVITE", 1), "sip:team@ex.com", "nobody:team", 1),
		"CSeq of another method":    strings.Replace(alice("g").request("INVITE", 1), "1 INVITE", "1 BYE", 1),
		"forwarded":                 alice("h").request("INVITE", 1),
		"ours, with all hops":       strings.Replace(alice("i").request("OPTIONS", 1), "sip:team@ex.com", "sip:203.0.113.10", 1),
		"ACK to an answer of ours":  "",
		"ACK to a server's refusal": "-",
	} {
		switch text {
		case "":
			refused := strings.Replace(invite, "Max-Forwards: 70", "Max-Forwards: 0", 1)
			answer := b.one(b.in(aliceAt, refused))
			_, tag, _ := strings.Cut(value(answer.text, "To"), "tag=")
			lost.to = tag
			text = lost.request("ACK", 1)
		case "-":
			other := alice("busy")
			inv := b.one(b.in(aliceAt, other.request("INVITE", 1)))
			b.one(b.from(inv, respond(inv.text, 486, "b1")))
			other.to = "b1"
			text = other.request("ACK", 1)
		}
		x, err := b.w.explain(b.p.current.Load(), &Query{Source: addrPortOf(aliceAt.remote), Message: []byte(text)}, &answer{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, server := 0, ""
		for _, p := range b.in(aliceAt, text) {
			switch s := status(p.text); s {
			case "":
				server = b.nameAt(p.to)
			default:
				got = int(s[0]-'0')*100 + int(s[1]-'0')*10 + int(s[2]-'0')
			}
		}
		if x.Status != got || x.Server != server {
			t.Errorf("%s: explain says %d %q (%s), traffic gets %d %q", name, x.Status, x.Server, x.Error, got, server)
		}
	}
}
