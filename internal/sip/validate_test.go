package sip

import (
	"errors"
	"strings"
	"testing"
)

const options = "OPTIONS sip:us.example.com SIP/2.0\r\nVia: SIP/2.0/UDP h;branch=z9hG4bK1\r\nFrom: <sip:a@h>;tag=1\r\n" +
	"To: <sip:us.example.com>\r\nCall-ID: c\r\nCSeq: 1 OPTIONS\r\n"

func validated(t *testing.T, raw string, o *Options) (*Msg, *Error) {
	t.Helper()
	m := new(Msg)
	if err := m.ParseDatagram([]byte(raw)); err != nil {
		t.Fatal(err)
	}
	return m, Validate(m, o)
}

// SV-3: 483 says that all else is right, so that an OPTIONS to the proxy itself can be answered.
func TestTooManyHopsComesLast(t *testing.T) {
	zero := options + "Max-Forwards: 0\r\n"
	if _, bad := validated(t, zero+"\r\n", &Options{}); bad != ErrTooManyHops {
		t.Errorf("got %v", bad)
	}
	for name, c := range map[string]struct {
		raw    string
		status int
	}{
		"extension": {zero + "Proxy-Require: x\r\n\r\n", 420},
		"scheme":    {strings.Replace(zero, "sip:us", "foo:us", 1) + "\r\n", 416},
		"version":   {strings.Replace(zero, "SIP/2.0\r\n", "SIP/2.1\r\n", 1) + "\r\n", 505},
	} {
		if _, bad := validated(t, c.raw, &Options{}); bad == nil || bad.Status != c.status || bad.Reason != Reason(c.status) {
			t.Errorf("%s: got %v", name, bad)
		}
	}
}

func TestOptions(t *testing.T) {
	o := Options{Schemes: []string{"sip", "foo"}, ProxyRequire: []string{"path"}, MaxURI: 20}
	for in, want := range map[string]int{
		options:                             0,
		options + "Proxy-Require: PATH\r\n": 0,
		options + "Proxy-Require: path, gruu\r\n":                  420,
		strings.Replace(options, "sip:us", "FOO:us", 1):            0,
		strings.Replace(options, "sip:us", "sips:us", 1):           416,
		strings.Replace(options, "sip:us", "sip:user-of-us@us", 1): 414,
	} {
		m, bad := validated(t, in+"\r\n", &o)
		status := 0
		if bad != nil {
			status = bad.Status
		}
		if status != want {
			t.Errorf("%q: %d, want %d", in, status, want)
		}
		if status == 420 {
			if got := AppendUnsupported([]byte("x: "), m, &o); string(got) != "x: gruu" {
				t.Errorf("unsupported %q", got)
			}
		}
	}
}

// ST-6: what can be read is there for the answer, whatever is wrong elsewhere.
func TestValuesInSpiteOfAFault(t *testing.T) {
	var m Msg
	err := m.Parse([]byte("INVITE  sip:b@h SIP/2.0\r\nX y: 1\r\n" + options[strings.Index(options, "Via"):] + "\r\n"))
	bad := Validate(&m, &Options{})
	var e *Error
	if !errors.As(err, &e) || bad != e || bad.Status != 400 || bad.Close {
		t.Errorf("Parse says %v, Validate %v", err, bad)
	}
	w := &m.Values
	if string(w.CallID) != "c" || string(w.FromTag) != "1" || w.CSeq != 1 || string(w.Via.Branch) != "z9hG4bK1" {
		t.Errorf("values %+v", w)
	}
}

// A response is never answered: whatever is wrong, the status is 0.
func TestFaultsOfResponses(t *testing.T) {
	const ok = "SIP/2.0 200 OK\r\nVia: SIP/2.0/UDP h\r\nFrom: <sip:a@h>;tag=1\r\nTo: <sip:b@h>\r\nCall-ID: c\r\nCSeq: 1 BYE\r\n"
	if _, bad := validated(t, ok+"\r\n", &Options{}); bad != nil {
		t.Fatal(bad)
	}
	for name, raw := range map[string]string{
		"version":   strings.Replace(ok, "SIP/2.0 200", "SIP/3.0 200", 1),
		"status":    strings.Replace(ok, " 200", " 2000", 1),
		"two tos":   ok + "t: <sip:b@h>\r\n",
		"no CSeq":   strings.Replace(ok, "CSeq", "XSeq", 1),
		"Via":       strings.Replace(ok, "UDP h", "UDP", 1),
		"name":      ok + "a b: c\r\n",
		"bare LF":   ok + "a: b\nc: d\r\n",
		"body":      ok + "Content-Length: 7\r\n",
		"no fields": "SIP/2.0 200 OK\r\nX: 1\r\n",
	} {
		var m Msg
		err := m.ParseDatagram([]byte(raw + "\r\n"))
		bad := Validate(&m, &Options{})
		if bad == nil || bad.Status != 0 {
			t.Errorf("%s: %v", name, bad)
		}
		var e *Error
		if err != nil && (!errors.As(err, &e) || e.Status != 0) {
			t.Errorf("%s: Parse says %v", name, err)
		}
	}
}
