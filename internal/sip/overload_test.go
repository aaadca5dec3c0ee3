package sip

import (
	"net/netip"
	"strings"
	"testing"
	"time"
)

func overloadOf(t *testing.T, params string) (Overload, bool) {
	t.Helper()
	v, _, err := NextVia([]byte("SIP/2.0/UDP h.example;branch=z9hG4bK1" + params))
	if err != nil {
		t.Fatalf("%q: %v", params, err)
	}
	return v.Overload()
}

// RFC 7339 section 4, RFC 7415 section 3: what the parameters say, in every spelling, and what is no oc at all.
func TestOverloadParameters(t *testing.T) {
	for params, want := range map[string]Overload{
		`;oc`:                     {Validity: 500 * time.Millisecond},
		`;oc;oc-algo="loss,rate"`: {Algo: []byte("loss,rate"), Validity: 500 * time.Millisecond},
		`;oc=20;oc-algo="loss";oc-validity=1000;oc-seq=1282321615.782`: {
			Answered: true, Value: 20, Algo: []byte("loss"), Validity: time.Second, Seq: 128232161578200},
		`; OC = 150 ;oc-algo=rate;oc-validity=0;oc-seq=7.00001`: {Answered: true, Value: 150, Algo: []byte("rate"), Seq: 700001},
		`;oc=0;oc-validity=99999999`:                            {Answered: true, Validity: maxValidity},
	} {
		o, ok := overloadOf(t, params)
		if !ok || o.Answered != want.Answered || o.Value != want.Value || string(o.Algo) != string(want.Algo) ||
			o.Validity != want.Validity || o.Seq != want.Seq {
			t.Errorf("%s: %+v, %v", params, o, ok)
		}
	}
	for _, params := range []string{"", ";rport", ";oc=", ";oc=x", ";oc=-1", ";oc=99999999999", ";oc=1;oc-seq=1", ";oc=1;oc-seq=1.", ";oc=1;oc-seq=1.000001",
		";oc=1;oc-seq=1234567890123.1", ";oc=1;oc-validity=-5", `;oc-algo="loss"`, ";ocx=1"} {
		if o, ok := overloadOf(t, params); ok {
			t.Errorf("%s: %+v", params, o)
		}
	}
	if (&Overload{}).Knows("rate") || !(&Overload{}).Knows("loss") || !(&Overload{Algo: []byte("A, Rate")}).Knows("rate") {
		t.Error("algorithms")
	}
}

// The answer takes the place of the client's oc, in a response that passes and in one of our own, and touches nothing else.
func TestTellOverload(t *testing.T) {
	answer := AppendOverload(nil, 20, 500*time.Millisecond, time.Unix(1282321615, 782_900_000))
	if string(answer) != `oc=20;oc-algo="loss";oc-validity=500;oc-seq=1282321615.782` {
		t.Fatalf("%s", answer)
	}
	const told = `oc=20;oc-algo="loss";oc-validity=500;oc-seq=1282321615.782`
	for asked, want := range map[string]string{
		`;branch=z9hG4bKc;oc;oc-algo="loss"`:            `;branch=z9hG4bKc;` + told,
		`;oc-algo="A,loss" ;oc ;rport;branch=z9hG4bKc`:  ` ;` + told + ` ;rport;branch=z9hG4bKc`,
		`;oc;branch=z9hG4bKc`:                           `;` + told + `;branch=z9hG4bKc`,
		`;oc;branch=z9hG4bKc;oc-algo="rate"`:            "",
		`;branch=z9hG4bKc`:                              "",
		`;branch=z9hG4bKc;oc=3;oc-algo="loss"`:          "",
		`;x="; oc";branch=z9hG4bKc;y=1;oc;oc-seq=1.1;z`: `;x="; oc";branch=z9hG4bKc;y=1;` + told + `;z`,
	} {
		head := "SIP/2.0/UDP 192.0.2.1:5060"
		rest := "From: <sip:a@b>;tag=1\r\nTo: <sip:c@d>\r\nCall-ID: x\r\nCSeq: 1 INVITE\r\nContent-Length: 0\r\n\r\n"
		var m Msg
		if err := m.Parse([]byte("SIP/2.0 200 OK\r\nVia: SIP/2.0/UDP us;branch=z9hG4bKus;oc=99\r\nVia: " + head + asked + "\r\n" + rest)); err != nil {
			t.Fatal(err)
		}
		it := m.Vias()
		it.Next()
		it.Next()
		var e Edits
		e.Reset(&m)
		e.PopVia()
		if e.TellOverload(&it.Via, answer) != (want != "") {
			t.Errorf("%s: answered? %v", asked, want == "")
		}
		if want == "" {
			want = asked
		}
		if got := string(e.Append(nil)); got != "SIP/2.0 200 OK\r\nVia: "+head+want+"\r\n"+rest {
			t.Errorf("%s:\n%s", asked, got)
		}
		if err := m.Parse([]byte("INVITE sip:c@d SIP/2.0\r\nVia: " + head + asked + "\r\n" + rest)); err != nil {
			t.Fatal(err)
		}
		b, ok := AppendAnswer(nil, &m, &Answer{Status: 503, Overload: answer, Source: netip.MustParseAddrPort("198.51.100.1:9")})
		stamped := strings.Replace(want, "rport", "rport=9", 1) + ";received=198.51.100.1"
		if !ok || !strings.Contains(string(b), "Via: "+head+stamped+"\r\n") {
			t.Errorf("%s: own answer %v\n%s", asked, ok, b)
		}
	}
}

func FuzzOverload(f *testing.F) {
	f.Add(`;branch=z9;oc;oc-algo="loss"`)
	f.Add(`;oc=20;oc-algo="loss";oc-validity=1000;oc-seq=1282321615.782`)
	f.Fuzz(func(t *testing.T, params string) {
		var m Msg
		if m.Parse([]byte("SIP/2.0 200 OK\r\nVia: SIP/2.0/UDP h"+params+"\r\nContent-Length: 0\r\n\r\n")) != nil {
			return
		}
		it := m.Vias()
		if !it.Next() {
			return
		}
		o, ok := it.Via.Overload()
		var e Edits
		e.Reset(&m)
		told := e.TellOverload(&it.Via, AppendOverload(nil, 7, time.Second, time.Unix(5, 0)))
		if told && (!ok || o.Answered) {
			t.Fatalf("%q: answered though %+v %v", params, o, ok)
		}
		out := e.Append(nil)
		var again Msg
		if err := again.Parse(out); err != nil {
			t.Fatalf("%q: %v\n%q", params, err, out)
		}
		if it = again.Vias(); !told || !it.Next() {
			return
		}
		if o, ok = it.Via.Overload(); !ok || !o.Answered || o.Value != 7 || o.Validity != time.Second || o.Seq != 500000 {
			t.Fatalf("%q: read back as %+v %v\n%q", params, o, ok, out)
		}
	})
}
