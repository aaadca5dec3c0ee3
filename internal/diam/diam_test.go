package diam

import (
	"bytes"
	"encoding/hex"
	"errors"
	"net/netip"
	"strings"
	"testing"
)

// request is an AAR with the AVPs that decide its way.
func request(t testing.TB) []byte {
	t.Helper()
	b := Build(nil, Header{Flags: FlagRequest | FlagProxiable | FlagRetransmitted, Command: CommandAA, App: AppRx,
		HopByHop: 0x01020304, EndToEnd: 0xa0b0c0d0})
	b.String(AVPSessionID, "c1.example.com;1;\x00;2")
	b.String(AVPOriginHost, "c1.example.com")
	b.String(AVPOriginRealm, "example.com")
	g := b.Begin(AVPProxyInfo, 0, AVPMandatory)
	b.String(AVPProxyHost, "p1")
	b.String(AVPProxyState, "s")
	b.End(g)
	b.Octets(AVPDestinationHost, 10415, AVPMandatory, []byte("a vendor's AVP of the same code"))
	b.String(AVPRouteRecord, "r1.example.com")
	msg, err := b.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return msg
}

func TestBuilderGoldenBytes(t *testing.T) {
	b := Build([]byte{0xee}, Header{Flags: FlagRequest, Command: CommandDeviceWatchdog, HopByHop: 1, EndToEnd: 2})
	b.String(AVPOriginHost, "a.b.c")
	b.Address(AVPHostIPAddress, netip.MustParseAddr("10.0.0.1"))
	b.Octets(500, 10415, AVPMandatory, []byte{1})
	b.Uint32(AVPOriginStateID, 7)
	got, err := b.Bytes()
	want := "ee" + "01000050" + "80000118" + "00000000" + "00000001" + "00000002" +
		"00000108" + "4000000d" + "612e622e63000000" +
		"00000101" + "4000000e" + "00010a0000010000" +
		"000001f4" + "c000000d" + "000028af" + "01000000" +
		"00000116" + "4000000c" + "00000007"
	if err != nil || hex.EncodeToString(got) != want {
		t.Fatalf("%v\n got %x\nwant %s", err, got, want)
	}
}

func TestHeaderRefused(t *testing.T) {
	good := request(t)
	for name, c := range map[string]struct {
		at   int
		put  []byte
		want error
	}{
		"version":        {0, []byte{2}, ErrVersion},
		"length 0":       {1, []byte{0, 0, 0}, ErrLength},
		"length 16":      {1, []byte{0, 0, 16}, ErrLength},
		"not whole word": {1, []byte{0, 0, 22}, ErrLength},
		"over the limit": {1, []byte{0xff, 0xff, 0xfc}, ErrLength},
	} {
		msg := bytes.Clone(good)
		copy(msg[c.at:], c.put)
		if _, err := ParseHeader(msg, 65536); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if _, err := ParseHeader(good[:19], 65536); !errors.Is(err, ErrShort) {
		t.Errorf("19 bytes: %v", err)
	}
}

func TestHeaderBits(t *testing.T) {
	for f, want := range map[Flags]bool{
		FlagRequest: true, FlagRequest | FlagProxiable | FlagRetransmitted: true, FlagError: true,
		FlagRequest | FlagError: false, FlagRequest | 1: false, 8: false,
	} {
		if got := (Header{Flags: f}).BitsValid(); got != want {
			t.Errorf("flags %#x: %v", f, got)
		}
	}
}

// A vendor's AVP is not the base AVP of the same code (diameter.md 15.4, fault 3).
func TestVendorAVPIsAnotherOne(t *testing.T) {
	if a, ok := Find(request(t)[HeaderLen:], AVPDestinationHost); ok {
		t.Fatalf("found %q", a.Data)
	}
}

// Wrong lengths end the walk where they stand (diameter.md 15.4, faults 4, 5, 43).
func TestWalkStopsAtWrongLength(t *testing.T) {
	good := "0000010840000009" + "61000000"
	for name, c := range map[string]struct {
		in     string
		before int
	}{
		"length 0":            {good + "0000010840000000" + "61000000", 1},
		"length 7":            {good + "0000010840000007", 1},
		"vendor, length 8":    {good + "00000108c0000008" + "000028af", 1},
		"beyond the end":      {good + "000001084000000d" + "61000000", 1},
		"16 MiB":              {"0000010840ffffff" + "61000000", 0},
		"half a header":       {good + "00000108", 1},
		"vendor without room": {good + "00000108c000000c", 1},
	} {
		in, err := hex.DecodeString(c.in)
		if err != nil {
			t.Fatal(err)
		}
		w, n := Walk(in), 0
		for _, ok := w.Next(); ok; _, ok = w.Next() {
			n++
		}
		if n != c.before || !errors.Is(w.Err(), ErrAVPLength) || !bytes.Equal(w.Failed(), in[c.before*12:]) {
			t.Errorf("%s: %d AVPs, %v, failed %x", name, n, w.Err(), w.Failed())
		}
	}
}

func TestTypedAccess(t *testing.T) {
	if _, ok := (AVP{Data: make([]byte, 5)}).Uint32(); ok {
		t.Error("five bytes are no Unsigned32")
	}
	for in, want := range map[string]string{
		"00010a000001": "10.0.0.1", "000220010db8000000000000000000000001": "2001:db8::1",
		"00": "", "00010a0000": "", "00020a000001": "", "00080a000001": "", "": "",
	} {
		data, err := hex.DecodeString(in)
		if err != nil {
			t.Fatal(err)
		}
		a, ok := AVP{Data: data}.Addr()
		if ok != (want != "") || ok && a.String() != want {
			t.Errorf("%s: %v %v, want %q", in, a, ok, want)
		}
	}
}

// Route-Record goes to the end, and nothing else changes but the length (diameter.md 3.1, step 11).
func TestRouteRecordIsAppended(t *testing.T) {
	msg := request(t)
	got, err := AppendRouteRecord([]byte{1, 2}, msg, "c1.example.com")
	if err != nil {
		t.Fatal(err)
	}
	got = got[2:]
	h, err := ParseHeader(got, 65536)
	if err != nil || h.Len != len(got) {
		t.Fatalf("%+v %v, %d bytes", h, err, len(got))
	}
	if !bytes.Equal(got[4:len(msg)], msg[4:]) {
		t.Error("bytes in front of the new AVP changed")
	}
	if want := "0000011a" + "40000016" + hex.EncodeToString([]byte("c1.example.com")) + "0000"; hex.EncodeToString(got[len(msg):]) != want {
		t.Errorf("added %x", got[len(msg):])
	}
	if same, err := AppendRouteRecord([]byte{9}, make([]byte, maxLen-4), "c1"); !errors.Is(err, ErrTooLong) || len(same) != 1 {
		t.Errorf("16 MiB: %d bytes, %v", len(same), err)
	}
}

func TestErrorAnswer(t *testing.T) {
	req := request(t)
	got, err := AppendError(nil, req, Reply{Result: ResultUnableToDeliver, Host: "wye", Realm: "example.com", Message: "no server"})
	if err != nil {
		t.Fatal(err)
	}
	h, err := ParseHeader(got, 65536)
	want := Header{Len: len(got), Flags: FlagProxiable | FlagError, Command: CommandAA, App: AppRx, HopByHop: 0x01020304, EndToEnd: 0xa0b0c0d0}
	if err != nil || h != want {
		t.Fatalf("%+v %v", h, err)
	}
	var codes []uint32
	w := Walk(got[HeaderLen:])
	for a, ok := w.Next(); ok; a, ok = w.Next() {
		codes = append(codes, a.Code)
		if v, _ := a.Uint32(); a.Is(AVPResultCode) && v != 3002 {
			t.Errorf("result %d", v)
		}
	}
	order := []uint32{AVPSessionID, AVPResultCode, AVPOriginHost, AVPOriginRealm, AVPErrorMessage, AVPProxyInfo}
	if len(codes) != len(order) || w.Err() != nil {
		t.Fatalf("AVPs %v, %v", codes, w.Err())
	}
	for i := range order {
		if codes[i] != order[i] {
			t.Errorf("AVP %d is %d, want %d", i, codes[i], order[i])
		}
	}
}

// A malformed AVP is answered with 5014 and the AVP's header in Failed-AVP, without E (diameter.md 3.6).
func TestErrorAnswerToMalformedAVP(t *testing.T) {
	req := append(request(t), 0, 0, 1, 8, 0x40, 0, 0, 0)
	setLen(req, len(req))
	w := Walk(req[HeaderLen:])
	for _, ok := w.Next(); ok; _, ok = w.Next() {
	}
	got, err := AppendError(nil, req, Reply{Result: ResultFor(w.Failed()), Host: "wye", Realm: "r", Failed: w.Failed()})
	if err != nil {
		t.Fatal(err)
	}
	if Flags(got[4]) != FlagProxiable {
		t.Errorf("flags %#x", got[4])
	}
	if a, _ := Find(got[HeaderLen:], AVPResultCode); !bytes.Equal(a.Data, []byte{0, 0, 0x13, 0x96}) {
		t.Errorf("result %x", a.Data)
	}
	failed, ok := Find(got[HeaderLen:], AVPFailedAVP)
	inner, ok2 := Find(failed.Data, AVPOriginHost)
	if !ok || !ok2 || len(inner.Data) != 4 {
		t.Errorf("failed-avp %x", failed.Data)
	}
	if ResultFor([]byte{1, 2, 3, 4}) != ResultInvalidMessageLength {
		t.Error("half a header is owed 5015")
	}
}

func TestIdentities(t *testing.T) {
	if !EqualIdentity([]byte("A.Example.com"), "a.example.COM") || EqualIdentity([]byte("a"), "ab") || EqualIdentity([]byte("a["), "a{") {
		t.Error("comparison without case")
	}
	for _, c := range []struct {
		a, b string
		want int
	}{{"A.b", "a.B", 0}, {"a", "b", -1}, {"b", "A", 1}, {"a.b", "a", 1}} {
		if got := CompareIdentity(c.a, c.b); got < 0 != (c.want < 0) || got > 0 != (c.want > 0) {
			t.Errorf("%s, %s: %d", c.a, c.b, got)
		}
	}
}

func TestFramerCutsStream(t *testing.T) {
	msg := request(t)
	big := Build(nil, Header{Command: 1})
	big.String(AVPUserName, strings.Repeat("x", 100_000))
	long, err := big.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	want := [][]byte{msg, long, msg, msg}
	stream := bytes.Join(want, nil)
	for _, step := range []int{1, 7, 4096, len(stream)} {
		f, in, got := NewFramer(200_000), stream, [][]byte(nil)
		for len(in) > 0 {
			n := copy(f.Space(), in[:min(step, len(in))])
			f.Filled(n)
			in = in[n:]
			for m, err := f.Next(); m != nil || err != nil; m, err = f.Next() {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, bytes.Clone(m))
			}
		}
		if len(got) != len(want) || !bytes.Equal(bytes.Join(got, nil), stream) || f.Rest() != 0 {
			t.Errorf("steps of %d: %d messages, %d bytes left", step, len(got), f.Rest())
		}
	}
}

// A length is judged before a buffer is taken for it (diameter.md 1.1).
func TestFramerTakesNoBufferForAbsurdLength(t *testing.T) {
	f := NewFramer(65536)
	f.Filled(copy(f.Space(), []byte{1, 0xff, 0xff, 0xfc, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}))
	for range 2 {
		if _, err := f.Next(); !errors.Is(err, ErrLength) {
			t.Fatalf("got %v", err)
		}
	}
	if len(f.buf) > framerLen {
		t.Errorf("buffer of %d bytes", len(f.buf))
	}
	f = NewFramer(65536)
	f.Filled(copy(f.Space(), "GET / "))
	if _, err := f.Next(); !errors.Is(err, ErrVersion) {
		t.Errorf("another protocol: %v", err)
	}
}

func TestFramerReleasesIdleBuffer(t *testing.T) {
	f := NewFramer(65536)
	f.Filled(copy(f.Space(), []byte{1}))
	f.Release()
	if f.Rest() != 1 {
		t.Error("a part of a message was let go")
	}
	f = NewFramer(65536)
	f.Filled(copy(f.Space(), request(t)))
	if m, _ := f.Next(); m == nil {
		t.Fatal("no message")
	}
	f.Release()
	if f.buf != nil {
		t.Error("buffer stays")
	}
}

func TestNoAllocationPerMessage(t *testing.T) {
	msg, out := request(t), make([]byte, 0, 4096)
	f := NewFramer(65536)
	f.Space()
	n := testing.AllocsPerRun(100, func() {
		f.Filled(copy(f.Space(), msg))
		m, _ := f.Next()
		h, _ := ParseHeader(m, 65536)
		w := Walk(m[HeaderLen:h.Len])
		for _, ok := w.Next(); ok; _, ok = w.Next() {
		}
		r, _ := AppendRouteRecord(out, m, "c1.example.com")
		SetHopByHop(r, 7)
		SetFlags(r, h.Flags|FlagRetransmitted)
		_, _ = AppendError(out, m, Reply{Result: ResultLoopDetected, Host: "h", Realm: "r"})
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}
