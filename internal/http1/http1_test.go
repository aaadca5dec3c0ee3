package http1

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

var testLimits = Limits{Target: 8192, Block: 16384, Fields: 128}

func parse(text string) (*Head, int, error) {
	h := new(Head)
	n, err := h.ParseRequest([]byte(text), &testLimits)
	return h, n, err
}

// HF-4, HF-6: what a request head may not hold, and the status each fault is owed.
func TestRequestRefused(t *testing.T) {
	const rest = "Host: a\r\n\r\n"
	for _, c := range []struct {
		name, text string
		want       *Error
	}{
		{"bare LF after the request line", "GET / HTTP/1.1\nHost: a\r\n\r\n", ErrBareLF},
		{"bare LF after a field", "GET / HTTP/1.1\r\nHost: a\n\r\n", ErrBareLF},
		{"bare LF at the end", "GET / HTTP/1.1\r\nHost: a\r\n\n", ErrBareLF},
		{"LF first", "\nGET / HTTP/1.1\r\n" + rest, ErrBareLF},
		{"three empty lines", "\r\n\r\n\r\nGET / HTTP/1.1\r\n" + rest, ErrEmptyLines},
		{"bare CR in the request line", "GET /\ra HTTP/1.1\r\n" + rest, ErrTarget},
		{"bare CR in a value", "GET / HTTP/1.1\r\nA: b\rc\r\n" + rest, ErrFieldValue},
		{"CR CR LF", "GET / HTTP/1.1\r\nA: b\r\r\n" + rest, ErrFieldValue},
		{"bare CR in a name", "GET / HTTP/1.1\r\nA\rb: c\r\n" + rest, ErrFieldName},
		{"NUL in a value", "GET / HTTP/1.1\r\nA: b\x00c\r\n" + rest, ErrFieldValue},
		{"DEL in a long value", "GET / HTTP/1.1\r\nA: 0123456789\x7f0123\r\n" + rest, ErrFieldValue},
		{"NUL in a name", "GET / HTTP/1.1\r\nA\x00: c\r\n" + rest, ErrFieldName},
		{"fold", "GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n", ErrFieldStart},
		{"white space before the first field", "GET / HTTP/1.1\r\n Host: a\r\n\r\n", ErrFieldStart},
		{"white space before the colon", "GET / HTTP/1.1\r\nHost : a\r\n\r\n", ErrFieldName},
		{"tab before the colon", "GET / HTTP/1.1\r\nHost\t: a\r\n\r\n", ErrFieldName},
		{"empty name", "GET / HTTP/1.1\r\n: a\r\n" + rest, ErrFieldName},
		{"no colon", "GET / HTTP/1.1\r\nHost\r\n" + rest, ErrFieldName},
		{"name in UTF-8", "GET / HTTP/1.1\r\nH\xc3\xb6st: a\r\n" + rest, ErrFieldName},
		{"two spaces before the version", "GET /  HTTP/1.1\r\n" + rest, ErrVersion},
		{"two spaces before the target", "GET  / HTTP/1.1\r\n" + rest, ErrVersion},
		{"tab between", "GET\t/ HTTP/1.1\r\n" + rest, ErrMethod},
		{"space after the version", "GET / HTTP/1.1 \r\n" + rest, ErrVersion},
		{"space before the method", " GET / HTTP/1.1\r\n" + rest, ErrMethod},
		{"method is no token", "G(T / HTTP/1.1\r\n" + rest, ErrMethod},
		{"space in the target", "GET /a b HTTP/1.1\r\n" + rest, ErrVersion},
		{"fragment", "GET /a#b HTTP/1.1\r\n" + rest, ErrTarget},
		{"control in the target", "GET /a\x01b HTTP/1.1\r\n" + rest, ErrTarget},
		{"0.9", "GET /\r\n", ErrOldVersion},
		{"0.9 spelled out", "GET / HTTP/0.9\r\n" + rest, ErrOldVersion},
		{"1.2", "GET / HTTP/1.2\r\n" + rest, ErrOtherVersion},
		{"2.0", "PRI * HTTP/2.0\r\n\r\n", ErrOtherVersion},
		{"lower case version", "GET / http/1.1\r\n" + rest, ErrVersion},
		{"long version", "GET / HTTP/1.10\r\n" + rest, ErrVersion},
		{"version without dot", "GET / HTTP/11\r\n" + rest, ErrVersion},
		{"only a method", "GET\r\n" + rest, ErrRequestLine},
		{"target too long", "GET /" + strings.Repeat("a", 8192) + " HTTP/1.1\r\n" + rest, ErrTargetLong},
		{"target too long, unfinished", "GET /" + strings.Repeat("a", 9000), ErrTargetLong},
		{"TLS hello", "\x16\x03\x01\x02\x00\x01", ErrMethod},
		{"block too long", "GET / HTTP/1.1\r\nA: " + strings.Repeat("a", 16384), ErrHeadLong},
		{"too many lines", "GET / HTTP/1.1\r\n" + strings.Repeat("A: b\r\n", 129) + "\r\n", ErrFieldCount},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, n, err := parse(c.text); !errors.Is(err, c.want) || n != 0 {
				t.Errorf("got %d, %v, want %v", n, err, c.want)
			}
			h, err := new(Head), error(nil)
			for i := 1; i <= len(c.text) && err == nil; i++ {
				_, err = h.ParseRequest([]byte(c.text[:i]), &testLimits)
			}
			if AsError(err) == nil || AsError(err).Status != c.want.Status {
				t.Errorf("octet by octet: %v, want %v", err, c.want)
			}
		})
	}
}

// HF-6: the target stays as it came; HB-8: 8,000 octets pass.
func TestRequestAccepted(t *testing.T) {
	long := "/" + strings.Repeat("a", 8000)
	for _, target := range []string{"/", "/%zz", "/a/..;/b", "//x", "/%2F?x=%00", "*", "http://a/b", "/a?b=\"<>\\^`{|}", "/\xc3\xb6", long} {
		h, n, err := parse("\r\n\r\nGET " + target + " HTTP/1.1\r\nHost:a \t\r\nX_Y:\t v \x80 \r\nEmpty:\r\n\r\nrest")
		if err != nil {
			t.Fatalf("%.40s: %v", target, err)
		}
		if string(h.Method.Of(h.Buf)) != "GET" || string(h.Target.Of(h.Buf)) != target || h.Minor != 1 {
			t.Errorf("read %s %s 1.%d", h.Method.Of(h.Buf), h.Target.Of(h.Buf), h.Minor)
		}
		if string(h.Buf[n:]) != "rest" || string(h.Value(Host)) != "a" || len(h.Fields) != 3 {
			t.Errorf("rest %q, host %q, %d fields", h.Buf[n:], h.Value(Host), len(h.Fields))
		}
		if v := h.Fields[1].Value.Of(h.Buf); string(v) != "v \x80" {
			t.Errorf("value %q", v)
		}
	}
}

// HF-1, HF-2, HF-3: one framing, or none at all.
func TestRequestFraming(t *testing.T) {
	for _, c := range []struct {
		fields string
		kind   BodyKind
		length int64
		err    *Error
	}{
		{"", NoBody, 0, nil},
		{"Content-Length: 0\r\n", NoBody, 0, nil},
		{"Content-Length: 17\r\n", Sized, 17, nil},
		{"Content-Length: 00017\r\n", Sized, 17, nil},
		{"Content-Length: 9223372036854775807\r\n", Sized, 1<<63 - 1, nil},
		{"Content-Length: 9223372036854775808\r\n", 0, 0, ErrLength},
		{"Content-Length: 99999999999999999999999\r\n", 0, 0, ErrLength},
		{"Content-Length: +5\r\n", 0, 0, ErrLength},
		{"Content-Length: -5\r\n", 0, 0, ErrLength},
		{"Content-Length: 5, 5\r\n", 0, 0, ErrLength},
		{"Content-Length: 5 5\r\n", 0, 0, ErrLength},
		{"Content-Length: 0x5\r\n", 0, 0, ErrLength},
		{"Content-Length: 5a\r\n", 0, 0, ErrLength},
		{"Content-Length:\r\n", 0, 0, ErrLength},
		{"Content-Length: 5\r\nContent-Length: 5\r\n", 0, 0, ErrLengthTwice},
		{"Content-Length: 5\r\ncontent-length: 6\r\n", 0, 0, ErrLengthTwice},
		{"Transfer-Encoding: chunked\r\n", Chunked, 0, nil},
		{"Transfer-Encoding:\tChunKed \t\r\n", Chunked, 0, nil},
		{"Transfer-Encoding: identity\r\n", 0, 0, ErrCodingUnknown},
		{"Transfer-Encoding: gzip, chunked\r\n", 0, 0, ErrCodingUnknown},
		{"Transfer-Encoding: xchunked\r\n", 0, 0, ErrCodingUnknown},
		{"Transfer-Encoding: chunked, chunked\r\n", 0, 0, ErrCoding},
		{"Transfer-Encoding: chunked,\r\n", 0, 0, ErrCoding},
		{"Transfer-Encoding: \"chunked\"\r\n", 0, 0, ErrCoding},
		{"Transfer-Encoding: chunked;q=1\r\n", 0, 0, ErrCoding},
		{"Transfer-Encoding:\r\n", 0, 0, ErrCoding},
		{"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 0, 0, ErrCoding},
		{"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", 0, 0, ErrCoding},
		{"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", 0, 0, ErrBothLengths},
		{"Content-Length: 5\r\nTransfer-Encoding: identity\r\n", 0, 0, ErrBothLengths},
		{"Transfer_Encoding: chunked\r\n", NoBody, 0, nil}, // a twin: cut, and no framing
		{"Content_Length: 5\r\n", NoBody, 0, nil},
	} {
		h, n, err := parse("POST / HTTP/1.1\r\nHost: a\r\n" + c.fields + "\r\n")
		if n == 0 || err != nil {
			t.Fatalf("%q: %v", c.fields, err)
		}
		f, err := h.RequestFraming()
		if AsError(err) != c.err || err == nil && (f.Kind != c.kind || f.Length != c.length) {
			t.Errorf("%q: %+v, %v", c.fields, f, err)
		}
	}
	h, _, _ := parse("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n")
	if _, err := h.RequestFraming(); AsError(err) != ErrCodingVersion {
		t.Errorf("chunked in 1.0: %v", err)
	}
}

// HF-7: status lines and the framing of answers, HB-5 among them.
func TestResponse(t *testing.T) {
	for _, c := range []struct {
		text   string
		head   bool
		status int // 0: refused
		kind   BodyKind
		stray  bool
		bad    bool // framing refused
	}{
		{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", false, 200, Sized, false, false},
		{"HTTP/1.1 200\r\n\r\n", false, 200, UntilClose, false, false},
		{"HTTP/1.1 200 \r\n\r\n", false, 200, UntilClose, false, false},
		{"HTTP/1.0 200 OK\r\n\r\n", false, 200, UntilClose, false, false},
		{"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false, 200, NoBody, false, false},
		{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", true, 200, NoBody, false, false},
		{"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", false, 304, NoBody, false, false},
		{"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", false, 204, NoBody, true, false},
		{"HTTP/1.1 204 No Content\r\n\r\n", false, 204, NoBody, false, false},
		{"HTTP/1.1 103 Early Hints\r\n\r\n", false, 103, NoBody, false, false},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", false, 200, Chunked, false, false},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", false, 200, 0, false, true},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", false, 200, 0, false, true},
		{"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", false, 200, 0, false, true},
		{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", false, 200, 0, false, true},
		{"HTTP/1.2 200 OK\r\n\r\n", false, 0, 0, false, false},
		{"HTTP/1.1 20 OK\r\n\r\n", false, 0, 0, false, false},
		{"HTTP/1.1 099 OK\r\n\r\n", false, 0, 0, false, false},
		{"HTTP/1.1  200 OK\r\n\r\n", false, 0, 0, false, false},
		{"HTTP/1.1 2000 OK\r\n\r\n", false, 0, 0, false, false},
		{"HTTP/1.1 200 O\x00K\r\n\r\n", false, 0, 0, false, false},
		{"HTTP/1.1 200 OK\n\r\n", false, 0, 0, false, false},
		{"<html>\r\n\r\n", false, 0, 0, false, false},
		{"<html>", false, 0, 0, false, false},
		{"\r\nHTTP/1.1 200 OK\r\n\r\n", false, 0, 0, false, false},
	} {
		h := new(Head)
		n, err := h.ParseResponse([]byte(c.text), &testLimits)
		if (err == nil && n > 0) != (c.status > 0) {
			t.Errorf("%q: %d, %v", c.text, n, err)
		}
		if c.status == 0 || err != nil {
			continue
		}
		f, stray, err := h.ResponseFraming(c.head)
		if h.Status != c.status || (err != nil) != c.bad || err == nil && (f.Kind != c.kind || stray != c.stray) {
			t.Errorf("%q: %d, %+v, %v, %v", c.text, h.Status, f, stray, err)
		}
	}
}

// HH-1: all Connection lines count; what the message needs can't be nominated away; twins go too (HH-3).
func TestCutHopByHop(t *testing.T) {
	h, _, err := parse("GET / HTTP/1.1\r\nHost: a\r\nConnection: close, X-One\r\nX-Kept: 1\r\nx_one: 0\r\nX-One: 1\r\n" +
		"CONNECTION: x-two ,host, Cookie,content-type, Content-Length\r\nX-Two: 2\r\nCookie: c=1\r\nContent-Type: t\r\n" +
		"Keep-Alive: timeout=5\r\nTE: trailers, gzip\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\nProxy-Connection: keep-alive\r\n" +
		"Proxy-Authorization: x\r\nProxy-Authenticate: x\r\nProxy-Authentication-Info: x\r\nTransfer_Encoding: chunked\r\nLast: l\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	h.CutHopByHop()
	want := "Host: a\r\nX-Kept: 1\r\nCookie: c=1\r\nContent-Type: t\r\nLast: l\r\n"
	if got := string(h.AppendFields(nil)); got != want {
		t.Errorf("left:\n%s\nwant:\n%s", got, want)
	}
	if !h.WantsClose() || h.WantsKeepAlive() || h.WantsUpgrade() || !h.TakesTrailers() {
		t.Errorf("flags %+v", h.conn)
	}
}

// HF-5: chunk lines that are refused wherever they are cut.
func TestChunksRefused(t *testing.T) {
	for _, body := range []string{
		"0x5\r\nhello\r\n0\r\n\r\n", "-5\r\nhello\r\n", "+5\r\nhello\r\n", "5\nhello\r\n", "5\r\nhello\n0\r\n", "5\r\nhelloX\r\n",
		"\r\n", "g\r\n", "ffffffffffffffff\r\n", "10000000000000000\r\n", "00000000000000005\r\nhello\r\n", "5 \r\nhello\r\n",
		"5;a\nb\r\nhello\r\n", "5;a\x00\r\nhello\r\n", "5 x;a\r\nhello\r\n", "5;" + strings.Repeat("a", 256) + "\r\nhello\r\n",
		"5\r\r\nhello\r\n", "5\r\nhello\r\n\r\n0\r\n\r\n", " 5\r\nhello\r\n", ";a\r\n",
	} {
		for _, size := range []int{1, 3, len(body)} {
			if got, _, err := runChunks(body, size, false); err == nil {
				t.Errorf("%.40q in pieces of %d passed as %q", body, size, got)
			}
		}
	}
}

// runChunks feeds body in pieces and gives what passed and what is left at the trailers.
func runChunks(body string, size int, bare bool) (out, rest string, err error) {
	c := Chunks{Bare: bare}
	b := []byte(body)
	for len(b) > 0 && !c.AtTrailers() {
		piece := b[:min(size, len(b))]
		for len(piece) > 0 && !c.AtTrailers() {
			pass, skip, err := c.Step(piece)
			out += string(piece[:pass])
			if err != nil {
				return out, "", err
			}
			piece = piece[pass+skip:]
			b = b[pass+skip:]
		}
	}
	if !c.AtTrailers() {
		return out, "", errors.New("no end")
	}
	return out, string(b), nil
}

// HF-5: sizes and data go on as received, extensions do not; Bare leaves the data.
func TestChunks(t *testing.T) {
	const body = "5;a=\"b;c\" ; d\r\nhello\r\n00A\t;x\r\n0123456789\r\n0;last\r\nT: v\r\n\r\nnext"
	for size := 1; size <= len(body); size++ {
		out, rest, err := runChunks(body, size, false)
		if err != nil || out != "5\r\nhello\r\n00A\r\n0123456789\r\n0\r\n" || rest != "T: v\r\n\r\nnext" {
			t.Fatalf("pieces of %d: %q, %q, %v", size, out, rest, err)
		}
		out, _, err = runChunks(body, size, true)
		if err != nil || out != "hello0123456789" {
			t.Fatalf("bare, pieces of %d: %q, %v", size, out, err)
		}
	}
}

// HB-7: fields that frame, route, carry trust or set cookies have no place in trailers.
func TestTrailers(t *testing.T) {
	h := new(Head)
	text := "Grpc-Status: 0\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\nHost: x\r\nX-Forwarded-For: 1.2.3.4\r\n" +
		"x_forwarded_for: 1.2.3.4\r\nSet-Cookie: a=b\r\nAuthorization: x\r\nX-Checksum: 1\r\nConnection: close\r\n\r\nrest"
	n, err := h.ParseTrailers([]byte(text), &testLimits)
	if err != nil || text[n:] != "rest" {
		t.Fatal(n, err)
	}
	h.CutTrailers()
	if got := string(h.AppendFields(nil)); got != "Grpc-Status: 0\r\nX-Checksum: 1\r\n" {
		t.Errorf("left %q", got)
	}
	h.Reset()
	if _, err := h.ParseTrailers([]byte("A: "+strings.Repeat("b", 9000)), &Limits{Block: 8192}); AsError(err) != ErrTrailerLong {
		t.Errorf("long trailers: %v", err)
	}
}

func TestCookies(t *testing.T) {
	v := []byte(`a=1; JSESSIONID="x.as1" ;b ; =c;d=e=f`)
	var got []string
	for len(v) > 0 {
		var n, val []byte
		n, val, v = NextCookie(v)
		got = append(got, fmt.Sprintf("%s|%s", n, val))
	}
	if s := strings.Join(got, " "); s != "a|1 JSESSIONID|x.as1 |b |c d|e=f" {
		t.Error(s)
	}
}

// Every known name is found by its own spelling, whatever the case.
func TestNames(t *testing.T) {
	for id := ID(1); id < NumIDs; id++ {
		for _, name := range []string{idNames[id], strings.ToUpper(idNames[id])} {
			if got, twin := IDOf([]byte(name)); got != id || twin {
				t.Errorf("%s is %d, %v", name, got, twin)
			}
		}
		if u := strings.ReplaceAll(idNames[id], "-", "_"); u != idNames[id] {
			if got, twin := IDOf([]byte(u)); got != id || !twin {
				t.Errorf("%s is %d, %v", u, got, twin)
			}
		}
	}
	if id, _ := IDOf([]byte("x-nothing")); id != Other {
		t.Error("an unknown name has a number")
	}
}

const sample = "GET /room/1?conf=4711 HTTP/1.1\r\nHost: phone.example.net\r\nUser-Agent: curl/8.0\r\nAccept: */*\r\n" +
	"Cookie: JSESSIONID=abc.as1; WGROUTE=cdacu7zzhrv2nphzg6v5oqxedczvmslokw56ihznxm\r\nX-Key: 4711\r\nConnection: keep-alive\r\n\r\n"

// Rule 1 of architecture.md 4.2.
func TestHeadAllocatesNothing(t *testing.T) {
	h, b, out := new(Head), []byte(sample), make([]byte, 0, 4096)
	work := func() {
		h.Reset()
		if n, err := h.ParseRequest(b, &testLimits); n == 0 || err != nil {
			t.Fatal(err)
		}
		if _, err := h.RequestFraming(); err != nil {
			t.Fatal(err)
		}
		h.CutHopByHop()
		out = h.AppendFields(out[:0])
	}
	work()
	if n := testing.AllocsPerRun(100, work); n != 0 {
		t.Errorf("%v allocations", n)
	}
	c, body := new(Chunks), []byte("5;x\r\nhello\r\n0\r\n")
	if n := testing.AllocsPerRun(100, func() {
		c.Reset()
		for b := body; len(b) > 0; {
			p, s, err := c.Step(b)
			if err != nil {
				t.Fatal(err)
			}
			b = b[p+s:]
		}
	}); n != 0 {
		t.Errorf("chunks: %v allocations", n)
	}
}

func BenchmarkHead(b *testing.B) {
	h, in, out := new(Head), []byte(sample), make([]byte, 0, 4096)
	b.ReportAllocs()
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		h.Reset()
		if n, err := h.ParseRequest(in, &testLimits); n == 0 || err != nil {
			b.Fatal(err)
		}
		h.CutHopByHop()
		out = h.AppendFields(out[:0])
	}
	if !bytes.Contains(out, []byte("Host")) {
		b.Fatal("nothing written")
	}
}
