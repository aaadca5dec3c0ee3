package h1

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/wyegate/wyegate/internal/http1"
)

const corpus = "../../../testdata/http"

// probe is one entry of the manifest: what a client sends, and what must come of it.
type probe struct {
	File   string   `json:"file"`
	IDs    []string `json:"ids"`
	Note   string   `json:"note"`
	Status int      `json:"status"`
	Follow bool     `json:"follow"` // the request behind it is served; else nobody sees it
	Sees   string   `json:"sees"`   // what the server receives
	Never  string   `json:"never"`  // what it must not
}

// fault is one entry for the servers' side: what a server answers, and what the client gets.
type fault struct {
	File    string   `json:"file"`
	IDs     []string `json:"ids"`
	Note    string   `json:"note"`
	Outcome string   `json:"outcome"` // a status, or "abort"
	Body    string   `json:"body"`
	Method  string   `json:"method"`
	Has     string   `json:"has"`
	Lacks   string   `json:"lacks"`
	Close   bool     `json:"close"` // the server's connection is not used again
}

type manifest struct {
	Requests  []probe `json:"requests"`
	Responses []fault `json:"responses"`
}

func readManifest(t *testing.T) (m manifest) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(corpus, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func readCase(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(corpus, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Every file of the corpus has its entry, and the corpus only grows.
func TestCorpusComplete(t *testing.T) {
	m := readManifest(t)
	listed := map[string]bool{}
	for _, p := range m.Requests {
		listed[p.File] = true
	}
	for _, f := range m.Responses {
		listed[f.File] = true
	}
	files, _ := filepath.Glob(corpus + "/*/*.raw")
	for _, f := range files {
		if rel, _ := filepath.Rel(corpus, f); !listed[filepath.ToSlash(rel)] {
			t.Errorf("%s is not in the manifest", rel)
		}
	}
	if len(m.Requests) < 176 || len(m.Responses) < 42 {
		t.Errorf("the corpus shrank: %d, %d", len(m.Requests), len(m.Responses))
	}
}

// strictServer reads requests as internal/http1 does and answers each with its target.
func strictServer(c *originConn) {
	var buf []byte
	piece := make([]byte, 4096)
	more := func() bool {
		n, err := c.Read(piece)
		buf = append(buf, piece[:n]...)
		return err == nil
	}
	for {
		h := new(http1.Head)
		n := 0
		for n == 0 {
			var err error
			if n, err = h.ParseRequest(buf, &http1.Limits{}); err != nil || n == 0 && !more() {
				return
			}
		}
		target := string(h.Target.Of(h.Buf))
		f, err := h.RequestFraming()
		if err != nil {
			return
		}
		switch f.Kind {
		case http1.Sized:
			for int64(len(buf)-n) < f.Length {
				if !more() {
					return
				}
			}
			n += int(f.Length)
		case http1.Chunked:
			for ch := (http1.Chunks{}); !ch.AtTrailers(); {
				if n == len(buf) && !more() {
					return
				}
				p, s, err := ch.Step(buf[n:])
				if n += p + s; err != nil {
					return
				}
			}
			for tr := new(http1.Head); ; {
				k, err := tr.ParseTrailers(buf[n:], &http1.Limits{})
				if err != nil || k == 0 && !more() {
					return
				}
				if k > 0 {
					n += k
					break
				}
			}
		}
		buf = buf[n:]
		if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: "+strconv.Itoa(len(target))+"\r\n\r\n"+target); err != nil {
			return
		}
	}
}

const smuggled = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"

// HF-1 to HF-6, HH-1 to HH-3, HB-2, HB-4, HB-7, HB-8: every probe, followed in the same write by a request that no
// server may see unless the probe was served; whole, and octet by octet.
func TestCorpusRequests(t *testing.T) {
	for _, p := range readManifest(t).Requests {
		t.Run(strings.TrimSuffix(filepath.Base(p.File), ".raw"), func(t *testing.T) {
			text := readCase(t, p.File)
			playProbe(t, p, text, len(text)+len(smuggled))
			if len(text) < 400 {
				playProbe(t, p, text, 1)
			}
		})
	}
}

func playProbe(t *testing.T, p probe, text string, size int) {
	t.Helper()
	o := newOrigin(t, strictServer)
	r := newRig(t, []string{o.addr})
	w := r.dial()
	all := text + smuggled
	go func() {
		for at := 0; at < len(all); at += size {
			if _, err := io.WriteString(w, all[at:min(at+size, len(all))]); err != nil {
				return // refused and closed meanwhile
			}
		}
	}()
	first, last, bodies := 0, 0, ""
	for {
		method := "GET"
		if first == 0 && strings.HasPrefix(text, "HEAD") {
			method = "HEAD"
		}
		resp, err := http.ReadResponse(w.r, &http.Request{Method: method})
		if err != nil {
			break
		}
		if resp.StatusCode == 100 {
			continue
		}
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatalf("body of %d: %v", resp.StatusCode, err)
		}
		if last = resp.StatusCode; first == 0 {
			first = last
		}
		if bodies += string(b); strings.Contains(string(b), "/smuggled") || resp.Close {
			break
		}
	}
	got := o.received()
	if first != p.Status {
		t.Errorf("pieces of %d: answered %d, want %d (%s)", size, first, p.Status, p.Note)
	}
	served := strings.Contains(bodies, "/smuggled")
	if served != p.Follow {
		t.Errorf("pieces of %d: the request behind it was served: %v", size, served)
	}
	// What is wrong with a body shows when its head is at the server already; the rest must not be there.
	if !p.Follow && (strings.Contains(got, "/smuggled") || got != "" && size > 1 || strings.Count(got, "HTTP/1.1\r\n") > 1) {
		t.Errorf("pieces of %d: a server saw %q", size, got)
	}
	if n := strings.Count(got, "GET /smuggled"); n > 1 {
		t.Errorf("pieces of %d: seen %d times", size, n)
	}
	got, _, _ = strings.Cut(got, "GET /smuggled")
	if p.Sees != "" && !strings.Contains(got, p.Sees) {
		t.Errorf("pieces of %d: server got\n%s\nwithout %q", size, got, p.Sees)
	}
	if p.Never != "" && strings.Contains(got, p.Never) {
		t.Errorf("pieces of %d: server got\n%s\nwith %q", size, got, p.Never)
	}
}

// HF-7, HB-5, HB-6, HB-7, HH-1 on the servers' side. Behind each case a second client asks: it must get its own answer.
func TestCorpusResponses(t *testing.T) {
	for _, f := range readManifest(t).Responses {
		t.Run(strings.TrimSuffix(filepath.Base(f.File), ".raw"), func(t *testing.T) {
			text := readCase(t, f.File)
			for _, size := range []int{len(text) + 1, 1} {
				if size == 1 && len(text) > 400 {
					continue
				}
				playFault(t, f, text, size)
			}
		})
	}
}

func playFault(t *testing.T, f fault, text string, size int) {
	t.Helper()
	method := f.Method
	if method == "" {
		method = "GET"
	}
	said := make(chan bool)
	next := "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnext"
	o := newOrigin(t, func(c *originConn) {
		req, _, err := c.request()
		if err != nil {
			return
		}
		if req.URL.Path == "/next" {
			answers(next)(&originConn{Conn: c, o: c.o, r: bufio.NewReader(io.MultiReader(strings.NewReader(get("/next")), c))})
			return
		}
		for at := 0; at < len(text); at += size {
			_, _ = io.WriteString(c, text[at:min(at+size, len(text))])
		}
		close(said)
		if strings.Contains(text, "\r\n\r\n") && !endsWithClose(f, text) {
			if req, _, err := c.request(); err == nil && req.URL.Path == "/next" {
				_, _ = io.WriteString(c, next)
			}
		}
	})
	r := newRig(t, []string{o.addr})
	w := r.dial()
	w.send(method + " /fault HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
	resp, err := http.ReadResponse(w.r, &http.Request{Method: method})
	for err == nil && resp.StatusCode < 200 {
		resp, err = http.ReadResponse(w.r, &http.Request{Method: method})
	}
	if err != nil {
		t.Fatalf("pieces of %d: no answer: %v", size, err)
	}
	body, err := io.ReadAll(resp.Body)
	switch {
	case f.Outcome == "abort":
		if err == nil {
			t.Errorf("pieces of %d: %d %q came to a clean end (%s)", size, resp.StatusCode, body, f.Note)
		}
	case err != nil:
		t.Errorf("pieces of %d: %v", size, err)
	case strconv.Itoa(resp.StatusCode) != f.Outcome, f.Outcome != "502" && string(body) != f.Body:
		t.Errorf("pieces of %d: %d %q, want %s %q (%s)", size, resp.StatusCode, body, f.Outcome, f.Body, f.Note)
	}
	if f.Has != "" && resp.Header.Get(f.Has) == "" || f.Lacks != "" && resp.Header.Get(f.Lacks) != "" {
		t.Errorf("pieces of %d: fields %v", size, resp.Header)
	}
	<-said // what comes behind a request nobody can tell from its answer
	second := r.dial()
	second.send(get("/next"))
	if resp, body := second.answer("GET"); resp.StatusCode != 200 || body != "next" {
		t.Errorf("pieces of %d: the next client got %d %q", size, resp.StatusCode, body)
	}
	if n := o.connections(); f.Close && n < 2 {
		t.Errorf("pieces of %d: the server's connection was used again", size)
	}
}

func endsWithClose(f fault, text string) bool {
	return f.Outcome == "abort" || f.Outcome == "502" || f.File == "response/close.raw" || f.File == "response/close-10.raw"
}
