package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/wyegate/wyegate/dcr"
	"github.com/wyegate/wyegate/proxy"
)

// The text of explain is the sample of operations.md 5.3, line by line.
func TestExplanationText(t *testing.T) {
	partition, since := 42930, noon.Add(-76*time.Hour)
	x := &proxy.Explanation{
		Listener: "sip-udp", Address: "udp 203.0.113.10:5060", Application: "voice/conference", Kind: "converged", Method: "INVITE",
		Target: "sip:room-4711@sip.example.net", Initial: true, RuleFile: "data-centric-rules.xml", Generation: 42,
		Rules: []dcr.Step{{Rule: "/sip-rules/if[1]/session-case[1]", Line: 9, Text: "session case is EXTERNAL"}, {Rule: "/sip-rules/if[1]/else", Line: 13, Matched: true, Text: `request.To.uri.resolve.user = "room-4711"`}},
		Key:   "room-4711", Source: "rule", Hash: "0xfdea3fc9cc41581c", Partition: &partition, Candidates: []string{"as2", "as1"},
		Weights: map[string]int{"as1": 100, "as2": 100}, PassedOver: []proxy.PassedOver{{Server: "as3", Why: "ams has 2 usable servers"}},
		Server: "as2", Decided: "rule", UsableSince: &since, IfDown: proxy.Alternatives{"as2": "as1", "site ams": "as4"},
	}
	want := `listener     sip-udp (udp 203.0.113.10:5060)
application  voice/conference (converged)      host sip.example.net
method       INVITE sip:room-4711@sip.example.net   no To tag, no token: a new key is wanted
rules        data-centric-rules.xml generation 42
  ✗ /sip-rules/if[1]/session-case[1]  line 9    session case is EXTERNAL
  ✓ /sip-rules/if[1]/else             line 13   request.To.uri.resolve.user = "room-4711"
key          room-4711   source rule   hash 0xfdea3fc9cc41581c   partition 42930
order        as2 (weight 100)  as1 (weight 100)   | as3 not used: ams has 2 usable servers
server       as2   by rule   usable since 3 d 4 h
if as2 is down → as1      if site ams is down → as4
`
	var b bytes.Buffer
	if explanationText(&b, x, noon); b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	b.Reset()
	none := &proxy.Explanation{Listener: "http", Method: "GET", Target: "http://www.example.net/", Decided: "refused", Status: 404, Error: "no application",
		Steps: []proxy.Step{{Step: "application", Text: "none takes it"}}}
	want = "listener     http\nmethod       GET http://www.example.net/\n· application none takes it\nanswer       404 no application\n"
	if explanationText(&b, none, noon); b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestHostOfTargets(t *testing.T) {
	for target, want := range map[string]string{
		"sip:a@b.example:5060;x=1": "b.example", "sips:b.example": "b.example", "sip:a@[2001:db8::1]:5060": "[2001:db8::1]", "tel:+46": "",
		"http://h.example:80/p?q": "h.example", "https://[::1]/": "[::1]", "": "", "*": "", "sip:": "",
	} {
		if got := hostOf(target); got != want {
			t.Errorf("%s: %q, want %q", target, got, want)
		}
	}
}
