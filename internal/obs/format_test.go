package obs

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

// invite is the record of the sample in operations.md 8.3.
func invite() *Record {
	r := &Record{
		Start: time.Date(2026, 11, 30, 10, 2, 13, 481e6, time.UTC), Generation: 42, Listener: "sip-udp", Proto: SIP, App: "voice/conference",
		Client: netip.MustParseAddrPort("198.51.100.7:5060"), Server: "as2", Rule: "/sip-rules/if[1]/else", KeySource: "rule", Code: 200,
		Disp: [4]byte{'-', '-', 'R', '-'}, Rules: 40 * time.Microsecond, First: 21300 * time.Microsecond, Final: 1840700 * time.Microsecond,
	}
	r.AddTried("as2")
	r.Method = r.Put([]byte("INVITE"), 32)
	r.URI = r.Put([]byte("sip:room-4711@sip.example.net"), 256)
	r.CallID = r.Put([]byte("c1@198.51.100.7"), 128)
	r.SetKey([]byte("room-4711"))
	return r
}

func page() *Record {
	r := &Record{
		Start: time.Date(2026, 11, 30, 11, 2, 13, 0, time.FixedZone("", 3600)), Generation: 7, Listener: "https", Proto: HTTP,
		Client: netip.MustParseAddrPort("[2001:db8::7]:51515"), Code: 404, Disp: [4]byte{'P', 'K', '-', '-'}, BytesIn: 0, BytesOut: 153,
	}
	r.Method = r.Put([]byte("GET"), 32)
	r.URI = r.Put([]byte("/x"), 256)
	r.Host = r.Put([]byte("www.example.net"), 64)
	return r
}

func TestJSONLine(t *testing.T) {
	want := `{"ts":"2026-11-30T10:02:13.481Z","node":"edge-ams-1","gen":42,"listener":"sip-udp","proto":"sip","app":"voice/conference","client":"198.51.100.7:5060","method":"INVITE","uri":"sip:room-4711@sip.example.net","call_id":"c1@198.51.100.7","key":"room-4711","key_source":"rule","rule":"/sip-rules/if[1]/else","server":"as2","tried":["as2"],"code":200,"disp":"--R-","ms":{"rules":0.04,"connect":0,"first":21.3,"final":1840.7}}` + "\n"
	if got := string(AppendJSON(nil, invite(), "edge-ams-1")); got != want {
		t.Errorf("got  %swant %s", got, want)
	}
	want = `{"ts":"2026-11-30T10:02:13.000Z","node":"n","gen":7,"listener":"https","proto":"http","client":"[2001:db8::7]:51515","method":"GET","uri":"/x","host":"www.example.net","bytes_in":0,"bytes_out":153,"tried":[],"code":404,"disp":"PK--","ms":{"rules":0,"connect":0,"first":0,"final":0}}` + "\n"
	if got := string(AppendJSON(nil, page(), "n")); got != want {
		t.Errorf("got  %swant %s", got, want)
	}
}

func TestOneLine(t *testing.T) {
	want := "2026-11-30T10:02:13.481Z edge-ams-1 42 sip-udp sip 198.51.100.7:5060 voice/conference/as2 INVITE sip:room-4711@sip.example.net 200 --R- 0.04/0/21.3/1840.7 1 key=room-4711 src=rule rule=/sip-rules/if[1]/else id=c1@198.51.100.7\n"
	if got := string(AppendLine(nil, invite(), "edge-ams-1")); got != want {
		t.Errorf("got  %swant %s", got, want)
	}
	want = "2026-11-30T10:02:13.000Z n 7 https http [2001:db8::7]:51515 -/- GET /x 404 PK-- 0/0/0/0 0 host=www.example.net bytes_in=0 bytes_out=153\n"
	if got := string(AppendLine(nil, page(), "n")); got != want {
		t.Errorf("got  %swant %s", got, want)
	}
}

// TestNoControlCharacterReachesTheLog (operations.md 8.3): they are written as \xNN, a blank cannot make a new field, a
// quote cannot end one.
func TestNoControlCharacterReachesTheLog(t *testing.T) {
	r := invite()
	r.URI = r.Put([]byte("sip:a b\r\n\x7f\xff\u0085é@x"), 256)
	r.SetKey([]byte("say \"hi\" \\ \x00é"))
	var line struct{ URI, Key string }
	b := AppendJSON(nil, r, "n")
	if err := json.Unmarshal(b, &line); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	if want := `sip:a b\x0d\x0a\x7f\xff\xc2\x85é@x`; line.URI != want {
		t.Errorf("uri %s, want %s", line.URI, want)
	}
	if want := `say "hi" \ \x00é`; line.Key != want {
		t.Errorf("key %s, want %s", line.Key, want)
	}
	text := string(AppendLine(nil, r, "n"))
	for _, want := range []string{` sip:a\x20b\x0d\x0a\x7f\xff\xc2\x85é@x 200 `, ` key="say \"hi\" \\ \x00é" src=`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s has no %s", text, want)
		}
	}
}

func TestMilliseconds(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0", 300: "0", 40 * time.Microsecond: "0.04", 999_600: "1", time.Millisecond: "1", 21_340 * time.Microsecond: "21.3",
		10 * time.Second: "10000", 1_500_000: "1.5", 100 * time.Microsecond: "0.1",
	} {
		if got := string(appendMS(nil, d)); got != want {
			t.Errorf("%v is %s, want %s", d, got, want)
		}
	}
}

func TestHalfFilledRecordHasFourLetters(t *testing.T) {
	if line := string(AppendLine(nil, &Record{}, "n")); !strings.Contains(line, " 0 ---- ") {
		t.Error(line)
	}
}

// FuzzLine: whatever a message holds, a record is one line of printable text, and its JSON can be read.
func FuzzLine(f *testing.F) {
	f.Add([]byte("sip:a@b"), []byte("key"), []byte("INVITE"))
	f.Add([]byte("\x00\"\\ \xe2\x80\xa8"), []byte("\xff\xfe"), []byte(" "))
	f.Fuzz(func(t *testing.T, uri, key, method []byte) {
		for _, proto := range []Proto{SIP, HTTP} {
			r := invite()
			r.used, r.Proto = 0, proto
			r.Method, r.URI, r.CallID, r.Host = r.Put(method, 32), r.Put(uri, 200), r.Put(key, 64), r.Put(uri, 64)
			r.SetKey(key)
			for _, line := range []string{string(AppendJSON(nil, r, "n")), string(AppendLine(nil, r, "n"))} {
				body, ended := strings.CutSuffix(line, "\n")
				if !ended || !utf8.ValidString(body) || strings.ContainsFunc(body, unicode.IsControl) {
					t.Errorf("%q", line)
				}
			}
			if !json.Valid(AppendJSON(nil, r, "n")) {
				t.Errorf("%q", AppendJSON(nil, r, "n"))
			}
			if fields := strings.Fields(string(AppendLine(nil, r, "n"))); len(fields) < 13 || fields[9] != "200" || fields[10] != "--R-" {
				t.Errorf("fields moved: %q", fields)
			}
		}
	})
}

func BenchmarkJSON(b *testing.B) {
	r := invite()
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendJSON(buf[:0], r, "edge-ams-1")
	}
}

func BenchmarkLine(b *testing.B) {
	r := invite()
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendLine(buf[:0], r, "edge-ams-1")
	}
}

func TestTimeIsWhatTheTimePackageWrites(t *testing.T) {
	for _, at := range []time.Time{{}, time.Unix(0, 999_999_999), time.Date(2026, 2, 28, 23, 59, 59, 7e6, time.FixedZone("", -3600)), time.Date(2031, 12, 9, 1, 2, 3, 45e6, time.UTC)} {
		if got, want := string(appendTime(nil, at)), at.UTC().Format(timeLayout); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
