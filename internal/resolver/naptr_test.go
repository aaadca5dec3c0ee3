package resolver

import (
	"regexp"
	"strings"
	"testing"

	"github.com/miekg/dns"
	"pgregory.net/rapid"
)

func naptrs(t *testing.T, lines ...string) (out []dns.RR) {
	t.Helper()
	for _, l := range lines {
		rr, err := dns.NewRR("4.3.2.1.e164.arpa. 300 IN NAPTR " + l)
		if err != nil {
			t.Fatal(l, err)
		}
		b := make([]byte, 512)
		n, err := dns.PackRR(rr, b, 0, nil, false) // over the wire and back, as it comes in traffic
		if err != nil {
			t.Fatal(err)
		}
		if rr, _, err = dns.UnpackRR(b[:n], 0); err != nil {
			t.Fatal(err)
		}
		out = append(out, rr)
	}
	return out
}

func TestENUMRecords(t *testing.T) {
	for _, c := range []struct {
		name string
		rrs  []string
		want string
	}{
		{"plain", []string{`100 10 "u" "E2U+sip" "!^.*$!sip:a@example.net!" .`}, "sip:a@example.net"},
		{"group", []string{`100 10 "u" "E2U+sip" "!^\\+12(.*)$!sip:\\1@example.net!" .`}, "sip:34@example.net"},
		{"order before preference", []string{`101 1 "u" "E2U+sip" "!^.*$!sip:b@x!" .`, `100 99 "u" "E2U+sip" "!^.*$!sip:a@x!" .`}, "sip:a@x"},
		{"preference", []string{`100 20 "u" "E2U+sip" "!^.*$!sip:b@x!" .`, `100 10 "u" "E2U+sip" "!^.*$!sip:a@x!" .`}, "sip:a@x"},
		{"equal: the same on all nodes", []string{`100 10 "u" "E2U+sip" "!^.*$!sip:b@x!" .`, `100 10 "u" "E2U+sip" "!^.*$!sip:a@x!" .`}, "sip:a@x"},
		{"other services are passed over", []string{`1 1 "u" "E2U+email:mailto" "!^.*$!mailto:a@x!" .`, `2 1 "U" "e2u+SIP" "!^.*$!sips:a@x!" .`}, "sips:a@x"},
		{"several services", []string{`1 1 "u" "E2U+msg+sip" "!^.*$!sip:a@x!" .`}, "sip:a@x"},
		{"not terminal", []string{`1 1 "" "E2U+sip" "!^.*$!sip:a@x!" .`}, ""},
		{"not SIP: null, not the next one", []string{`1 1 "u" "E2U+sip" "!^.*$!tel:+1!" .`, `2 1 "u" "E2U+sip" "!^.*$!sip:a@x!" .`}, ""},
		{"flag i", []string{`1 1 "u" "E2U+sip" "!^.*$!SIP:a@x!i" .`}, "SIP:a@x"},
		{"unknown flag", []string{`1 1 "u" "E2U+sip" "!^.*$!sip:a@x!g" .`}, ""},
		{"no match", []string{`1 1 "u" "E2U+sip" "!^\\+99!sip:a@x!" .`}, ""},
		{"group that is not there", []string{`1 1 "u" "E2U+sip" "!^.*$!sip:\\1@x!" .`}, ""},
		{"broken expression", []string{`1 1 "u" "E2U+sip" "!(!sip:a@x!" .`}, ""},
		{"no end", []string{`1 1 "u" "E2U+sip" "!^.*$!sip:a@x" .`}, ""},
		{"control characters", []string{`1 1 "u" "E2U+sip" "!^.*$!sip:a@x\010\010!" .`}, ""},
		{"none", nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := enumURI("1234", naptrs(t, c.rrs...)); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestDomain(t *testing.T) {
	n, ok := parseNumber([]byte("0046"))
	if !ok || n.domain("e164.arpa") != "6.4.0.0.e164.arpa" || n.digits() != "0046" {
		t.Errorf("%q %v", n.domain("e164.arpa"), ok)
	}
	if m, _ := parseNumber([]byte("46")); m == n {
		t.Error("leading zeros are lost")
	}
}

func TestNumbersRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := rapid.StringMatching(`[0-9]{1,15}`).Draw(rt, "digits")
		n, ok := parseNumber([]byte(d))
		if !ok || n.digits() != d {
			rt.Fatalf("%q became %q", d, n.digits())
		}
	})
}

// Whatever a record says: no panic, and a result that is no SIP URI never comes out.
func FuzzRewrite(f *testing.F) {
	for _, s := range []string{`!^.*$!sip:a@x!`, `!^\+(.*)$!sip:\1@x!i`, `/a\/b/c/`, `!!!`, `!(((((a*)*)*)*)*$!\9!`, `\\\\`} {
		f.Add(s)
	}
	clean := regexp.MustCompile(`(?i)^sips?:[!-~]+$`)
	f.Fuzz(func(t *testing.T, subst string) {
		out, err := rewrite("+4612345678", unescape(subst))
		if err != nil {
			return
		}
		if sipURI(out) && (!clean.MatchString(out) || strings.ContainsAny(out, "<>\"")) {
			t.Errorf("%q gives %q", subst, out)
		}
	})
}
