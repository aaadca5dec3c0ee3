package sip

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const corpus = "../../testdata/sip"

// vector is an entry of testdata/sip/manifest.json: what the whole program shall do with a message, and what of that the
// wire layer decides alone.
type vector struct {
	File      string   `json:"file"`
	Length    int      `json:"length"`
	Transport string   `json:"transport"` // udp: outcome is that of a datagram; stream
	Outcome   any      `json:"outcome"`   // forward, drop, close, ignore, ping, or the status answered
	Wire      any      `json:"wire"`      // what Validate says, where it is not the outcome
	Stream    []string `json:"stream"`    // pieces on a stream, and what Validate says of each message
	Pending   string   `json:"pending"`   // why the case is not passed
	Group     string   `json:"group"`     // all of a group have one From tag and Call-ID
	IDs       []string `json:"ids"`

	FromTag     *string `json:"from_tag"`
	ToTag       *string `json:"to_tag"`
	CallID      *string `json:"call_id"`
	Branch      *string `json:"branch"`
	Host        *string `json:"host"` // address of the Request-URI, empty: a name
	Port        *string `json:"port"`
	Received    *string `json:"received"`
	Unsupported *string `json:"unsupported"`
	Vias        *int    `json:"vias"`
	Routes      *int    `json:"routes"`
	Hops        *int    `json:"hops"`
	RetryAfter  *int    `json:"retry_after"` // -1: malformed

	raw []byte
}

func vectors(t testing.TB) []vector {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(corpus, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	var list []vector
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	for i := range list {
		v := &list[i]
		if v.raw, err = os.ReadFile(filepath.Join(corpus, v.File)); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

func TestCorpusIsWhole(t *testing.T) {
	listed := map[string]bool{}
	rfc4475 := 0
	for _, v := range vectors(t) {
		if listed[v.File] {
			t.Errorf("%s is listed twice", v.File)
		}
		listed[v.File] = true
		if len(v.raw) != v.Length {
			t.Errorf("%s has %d octets, not %d", v.File, len(v.raw), v.Length)
		}
		if len(v.IDs) == 0 {
			t.Errorf("%s names no requirement", v.File)
		}
		if filepath.Dir(v.File) == "rfc4475" {
			rfc4475++
		}
		if v.Pending != "" {
			t.Logf("not passed: %s: %s", v.File, v.Pending)
		}
	}
	if rfc4475 != 49 {
		t.Errorf("%d messages of RFC 4475", rfc4475)
	}
	files, err := filepath.Glob(filepath.Join(corpus, "*/*.msg"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if name, _ := filepath.Rel(corpus, f); !listed[filepath.ToSlash(name)] {
			t.Errorf("%s is not in the manifest", name)
		}
	}
}

// judge gives what Validate says, in the words of the manifest.
func judge(m *Msg, parsed error) string {
	var o Options
	bad := Validate(m, &o)
	switch {
	case parsed != nil && bad == nil:
		return "refused by Parse only"
	case bad == nil:
		return "forward"
	case bad.Status == 0:
		return "drop"
	}
	return strconv.Itoa(bad.Status)
}

func TestCorpusDatagrams(t *testing.T) {
	groups := map[string]string{}
	for _, v := range vectors(t) {
		if v.Transport != "udp" {
			continue
		}
		t.Run(v.File, func(t *testing.T) {
			if KeepAlive(v.raw) {
				if v.Outcome != "ignore" {
					t.Error("taken for a keep-alive")
				}
				return
			}
			var m Msg
			got := judge(&m, m.ParseDatagram(v.raw))
			want := v.Outcome
			if v.Wire != nil {
				want = v.Wire
			}
			if got != fmt.Sprint(want) {
				t.Errorf("got %s, want %v: %v", got, want, Validate(&m, &Options{}))
			}
			checkValues(t, &v, &m)
			if v.Group != "" {
				key := string(m.Values.CallID) + " " + string(m.Values.FromTag)
				if other, seen := groups[v.Group]; seen && other != key {
					t.Errorf("key %q, another of %s has %q", key, v.Group, other)
				}
				groups[v.Group] = key
			}
			if string(rebuild(&m)) != string(m.Raw) {
				t.Error("the index does not cover every octet")
			}
			checkAnswer(t, &m)
		})
	}
}

func checkValues(t *testing.T, v *vector, m *Msg) {
	t.Helper()
	w := &m.Values
	text := func(what string, want *string, got []byte) {
		if want != nil && *want != string(got) {
			t.Errorf("%s is %q, want %q", what, got, *want)
		}
	}
	number := func(what string, want *int, got int) {
		if want != nil && *want != got {
			t.Errorf("%s is %d, want %d", what, got, *want)
		}
	}
	text("From tag", v.FromTag, w.FromTag)
	text("To tag", v.ToTag, w.ToTag)
	text("Call-ID", v.CallID, w.CallID)
	text("branch", v.Branch, w.Via.Branch)
	text("port", v.Port, w.Target.Port)
	text("Unsupported", v.Unsupported, AppendUnsupported(nil, m, &Options{}))
	number("Max-Forwards", v.Hops, w.MaxForwards)
	vias, routes := 0, 0
	for it := m.Vias(); it.Next(); vias++ {
	}
	for it := m.Addrs(Route); it.Next(); routes++ {
	}
	number("number of Vias", v.Vias, vias)
	number("number of Routes", v.Routes, routes)
	if v.Host != nil {
		addr, ok := ParseHost(w.Target.Host)
		if ok != (*v.Host != "") || ok && addr.String() != *v.Host {
			t.Errorf("host is %v, want %q", addr, *v.Host)
		}
	}
	if v.Received != nil {
		if addr, ok := w.Via.Received(); !ok || addr.String() != *v.Received {
			t.Errorf("received is %v, want %s", addr, *v.Received)
		}
	}
	if v.RetryAfter != nil {
		r, err := ParseRetryAfter(m.Value(RetryAfter))
		if err != nil {
			r.Delta = -1
		}
		number("Retry-After", v.RetryAfter, r.Delta)
	}
}

// play feeds the pieces of a stream and tells what came of it: every piece with its octets, and what is still awaited.
func play(chunks ...[]byte) []string {
	f := NewFramer(Limits{})
	var told []string
	var m Msg
	for _, c := range chunks {
		f.Feed(c)
		for more := true; more; {
			p, msg, bad := f.Next()
			switch p {
			case More:
				more = false
			case Ping:
				told = append(told, "ping")
			case Pong:
				told = append(told, "pong")
			case Message:
				told = append(told, "message "+judge(&m, m.Parse(msg)), string(msg))
			case Broken:
				return append(told, "broken "+strconv.Itoa(bad.Status), string(msg))
			}
		}
	}
	switch f.Part() {
	case InHead:
		told = append(told, "wait head", "")
	case InBody:
		told = append(told, "wait body", "")
	}
	return told
}

// pieces leaves the octets out of what play tells.
func pieces(told []string) []string {
	out := []string{}
	for i := 0; i < len(told); i++ {
		out = append(out, told[i])
		if told[i] != "ping" && told[i] != "pong" {
			i++
		}
	}
	return out
}

// sameCut says that the framer gives the pieces of whole also when fed in these chunks. It builds nothing, so that all
// pairs of cuts can be tried.
func sameCut(f *Framer, whole []string, chunks ...[]byte) bool {
	*f = Framer{limits: f.limits, buf: f.buf[:0]}
	n := 0
	tell := func(kind, octets string) bool {
		if n >= len(whole) || !strings.HasPrefix(whole[n], kind) {
			return false
		}
		n++
		if kind != "ping" && kind != "pong" {
			n++
			return whole[n-1] == octets
		}
		return true
	}
	for _, c := range chunks {
		f.Feed(c)
		for more := true; more; {
			same := true
			switch p, msg, _ := f.Next(); p {
			case More:
				more = false
			case Ping:
				same = tell("ping", "")
			case Pong:
				same = tell("pong", "")
			case Message:
				same = tell("message", string(msg))
			case Broken:
				return tell("broken", string(msg)) && n == len(whole)
			}
			if !same {
				return false
			}
		}
	}
	return n == len(whole) || f.Part() != Between && tell("wait", "") && n == len(whole)
}

// Section 21.3: every stream case with the input cut at every octet, and at every pair of octets for files under 2 KiB.
// For larger ones the pairs are a sample, and under the race detector, which has nothing to find here, the first cut is.
func TestCorpusStreams(t *testing.T) {
	for _, v := range vectors(t) {
		t.Run(v.File, func(t *testing.T) {
			t.Parallel()
			whole := play(v.raw)
			if got := pieces(whole); !slices.Equal(got, v.Stream) {
				t.Fatalf("got %q, want %q", got, v.Stream)
			}
			single := make([][]byte, len(v.raw))
			for i := range v.raw {
				single[i] = v.raw[i : i+1]
			}
			if got := play(single...); !slices.Equal(got, whole) {
				t.Fatalf("octet by octet: got %q, want %q", got, whole)
			}
			f := NewFramer(Limits{})
			step := 1 + len(v.raw)/4096
			for i := 0; i < len(v.raw); i += step {
				if !sameCut(f, whole, v.raw[:i], v.raw[i:]) {
					t.Fatalf("cut at %d: got %q, want %q", i, play(v.raw[:i], v.raw[i:]), whole)
				}
			}
			if step = 1; len(v.raw) >= 2048 {
				step = 1 + len(v.raw)/50
			}
			for i := 0; i < len(v.raw); i += max(step, firstCut) {
				for j := i + 1; j < len(v.raw); j += step {
					if !sameCut(f, whole, v.raw[:i], v.raw[i:j], v.raw[j:]) {
						t.Fatalf("cut at %d and %d: got %q, want %q", i, j, play(v.raw[:i], v.raw[i:j], v.raw[j:]), whole)
					}
				}
			}
		})
	}
}

// Section 21.3: all cases of a group in one write, and that write cut at every octet: the same messages and answers as one
// by one. A case that ends a connection, or that waits for what never comes, stands last.
func TestCorpusGroupsInOneWrite(t *testing.T) {
	groups := map[string][]vector{}
	for _, v := range vectors(t) {
		dir := filepath.Dir(v.File)
		groups[dir] = append(groups[dir], v)
	}
	for dir, list := range groups {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			var all []byte
			var whole []string
			var last []vector
			for _, v := range list {
				told := play(v.raw)
				if ends(told) {
					last = append(last, v)
					continue
				}
				all, whole = append(all, v.raw...), append(whole, told...)
			}
			f := NewFramer(Limits{})
			check := func(what string, raw []byte, want []string) {
				t.Helper()
				if got := play(raw); !slices.Equal(got, want) {
					t.Fatalf("%s in one write: got %q, want %q", what, pieces(got), pieces(want))
				}
				for i := 0; i < len(raw); i += firstCut {
					if !sameCut(f, want, raw[:i], raw[i:]) {
						t.Fatalf("%s cut at %d", what, i)
					}
				}
			}
			check("all", all, whole)
			for _, v := range last {
				if got := play(slices.Concat(all, v.raw)); !slices.Equal(got, slices.Concat(whole, play(v.raw))) {
					t.Fatalf("%s behind all others: got %q, want %q", v.File, pieces(got), pieces(play(v.raw)))
				}
			}
		})
	}
}

// ends says that nothing can follow what was told: not even a CRLF that may be the first half of a ping.
func ends(told []string) bool {
	if len(told) == 0 {
		return true
	}
	for _, s := range told {
		if strings.HasPrefix(s, "broken ") || strings.HasPrefix(s, "wait ") {
			return true
		}
	}
	return false
}
