package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/wyegate/wyegate/internal/lbtest"
)

// The exit status of probe tells up, maintenance, down and silence apart (operations.md 5.1, 5.2).
func TestProbe(t *testing.T) {
	ua, err := lbtest.NewUA("as1", func(_ *lbtest.UA, m *lbtest.Message) {
		switch uri := string(m.Bytes(m.URI)); {
		case strings.Contains(uri, "busy@"):
			m.Reply(m.Response(503, "Service Unavailable", "x"))
		case !strings.Contains(uri, "mute@"):
			m.Reply(m.Response(404, "Not Found", "x")) // any answer but 503 is alive
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer ua.Close()
	at := ua.Addr.String()
	for _, c := range []struct {
		args   []string
		status int
		part   string
	}{
		{[]string{"sip:x@" + at}, 0, "up           sip:x@" + at + "  404 Not Found"},
		{[]string{"sip:busy@" + at + ";transport=tcp"}, exitRefused, "maintenance"},
		{[]string{"sip:mute@" + at, "--timeout", "200ms"}, exitDeadline, "silent"},
		{[]string{"http://" + at + "/"}, exitWrong, "down"},
		{[]string{"sip:x@" + at, "--count", "3", "-o", "json"}, 0, `"state": "up"`},
		{[]string{"gopher:x"}, exitUsage, "gopher"},
		{[]string{"aaa://x"}, exitUsage, "not in this build"},
	} {
		a := probe(t, c.args...)
		if a.status != c.status || !strings.Contains(a.out+a.err, c.part) {
			t.Errorf("%q: status %d, %q %q; want %d and %q", c.args, a.status, a.out, a.err, c.status, c.part)
		}
	}
}

func probe(t *testing.T, args ...string) answer {
	t.Helper()
	var v struct {
		Globals
		Probe ProbeCmd `cmd:""`
	}
	var out, errOut bytes.Buffer
	v.out, v.errOut = &out, &errOut
	p, err := kong.New(&v, kong.Exit(func(int) {}), kong.Writers(&out, &errOut))
	if err != nil {
		t.Fatal(err)
	}
	k, err := p.Parse(append([]string{"probe"}, args...))
	if err != nil {
		t.Fatal(err)
	}
	err = k.Run(&v.Globals)
	a := answer{out.String(), errOut.String(), exitStatus(err)}
	if err != nil {
		a.err += err.Error()
	}
	return a
}
