package engine

import "testing"

func TestParseSecrets(t *testing.T) {
	list, err := ParseSecrets([]byte("# new\n3: 0123456789abcdef\n\n1 fedcba9876543210\n"))
	if err != nil || len(list) != 2 || list[0].Number != 3 || string(list[1].Bytes) != "fedcba9876543210" {
		t.Fatalf("%+v, %v", list, err)
	}
	for _, bad := range []string{"", "16: 0123456789abcdef", "x: 0123456789abcdef", "1: short", "0123456789abcdef0123"} {
		if list, err := ParseSecrets([]byte(bad)); err == nil {
			t.Errorf("%q is taken: %+v", bad, list)
		}
	}
}

func TestTextsBecomeMessages(t *testing.T) {
	if got := string(SIPText("OPTIONS sip:a SIP/2.0\nVia: x\n")); got != "OPTIONS sip:a SIP/2.0\r\nVia: x\r\n\r\n" {
		t.Errorf("%q", got)
	}
	for text, want := range map[string]string{
		"GET https://h.example/a?b=c":               "GET /a?b=c HTTP/1.1\r\nHost: h.example\r\n\r\n",
		"GET https://h.example":                     "GET / HTTP/1.1\r\nHost: h.example\r\n\r\n",
		"GET /a HTTP/1.1\nHost: x\n":                "GET /a HTTP/1.1\r\nHost: x\r\n\r\n",
		"POST http://h.example:8080/p\nX-User: kim": "POST /p HTTP/1.1\r\nHost: h.example:8080\r\nX-User: kim\r\n\r\n",
	} {
		if got, _ := HTTPText(text); string(got) != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
