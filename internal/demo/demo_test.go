package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emiago/sipgo/sip"
)

// lines gathers what a demo prints and acts on it.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
	on   map[string]func() // what to do when a text has been printed, once
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, err := l.text.Write(b)
	for want, f := range l.on {
		if strings.Contains(l.text.String(), want) {
			delete(l.on, want)
			f()
		}
	}
	return n, err
}

// folder gives the folder that the output names.
func folder(t *testing.T, out string) string {
	t.Helper()
	for l := range strings.Lines(out) {
		if dir, ok := strings.CutPrefix(l, "files "); ok {
			return strings.TrimSpace(dir)
		}
	}
	t.Fatalf("no folder named in:\n%s", out)
	return ""
}

// TestEveryCheckHolds is the whole demo, for real: it ends when the sum has been printed (operations.md 2.1).
func TestEveryCheckHolds(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	out := &lines{}
	var dir string
	out.on = map[string]func(){
		"dcr lint": cancel,
		"timers": func() {
			dir = folder(t, out.text.String())
			for _, name := range []string{configName, rulesName, socketName} {
				if _, err := os.Stat(dir + "/" + name); err != nil {
					t.Errorf("while it runs: %v", err)
				}
			}
		},
	}
	r, err := Run(ctx, Options{Out: out, Program: "bin/wyegate"})
	text := out.text.String()
	t.Log(text)
	if err != nil {
		t.Fatal(err)
	}
	if !r.OK || !r.Done || r.Failed() || len(r.Steps) != 7 || len(r.Skipped) != 6 {
		t.Errorf("result %+v", r)
	}
	for _, s := range r.Steps {
		if !s.OK || s.Name == "" || s.Detail == "" {
			t.Errorf("step %+v", s)
		}
	}
	for _, want := range []string{
		"1000 of 1000 rooms agree", "200 of 200 messages", "120 of 120", "400 of 400 stayed with their cookie",
		"3 with live calls waited for their BYE", "0 failed; the broken one changed nothing", "7 held, 0 failed, 6 skipped.",
		"try:  bin/wyegate --socket " + dir + "/admin.sock explain", "skipped: not built",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in the output", want)
		}
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the folder %s is left: %v", dir, err)
	}
}

// TestTimeIsUp: a demo that is cut short has no failed check, and says that it is not done.
func TestTimeIsUp(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	out := &lines{on: map[string]func(){"timers": cancel}}
	r, err := Run(ctx, Options{Out: out})
	if err != nil {
		t.Fatal(err)
	}
	if r.OK || r.Done || r.Failed() {
		t.Errorf("result %+v\n%s", r, out.text.String())
	}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(b); !strings.HasPrefix(got, `{"ok":false,"seconds":`) || !strings.Contains(got, `"steps":[]`) ||
		!strings.Contains(got, `"skipped":[{"name":"`) || !strings.Contains(got, `"reason":"not built"}`) {
		t.Errorf("JSON %s", got)
	}
}

// TestLengthEndsIt: --seconds ends a demo by itself.
func TestLengthEndsIt(t *testing.T) {
	r, err := Run(t.Context(), Options{Out: &lines{}, Length: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if r.Done || r.Seconds > 10 {
		t.Errorf("result %+v", r)
	}
}

// TestPortInUse: a port that is taken is replaced, and the output says so.
func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", address(0))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.ListenPacket("udp", address(0))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	http, sip := l.Addr().(*net.TCPAddr).Port, c.LocalAddr().(*net.UDPAddr).Port
	e, err := newEdge(Ports{SIP: sip, HTTP: http})
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	if e.sipPort == sip || e.httpPort == http || len(e.moved) != 2 {
		t.Errorf("SIP %d of %d, HTTP %d of %d, said %q", e.sipPort, sip, e.httpPort, http, e.moved)
	}
	var b bytes.Buffer
	printer{&b}.folder(e)
	if !strings.Contains(b.String(), "is in use: SIP is on") || !strings.Contains(b.String(), "is in use: HTTP is on") {
		t.Errorf("output %q", b.String())
	}
}

// TestLongFolder: a socket fits into its address wherever the system keeps such folders.
func TestLongFolder(t *testing.T) {
	long := t.TempDir() + "/" + strings.Repeat("long", 30)
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", long)
	dir, err := makeFolder()
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(dir)
	if n := len(dir + "/" + socketName); n > longestSocket {
		t.Errorf("%s: %d octets", dir, n)
	}
	if left, err := os.ReadDir(long); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestStoppedServerComesBack: the same ports after stop and start, and nothing answers between.
func TestStoppedServerComesBack(t *testing.T) {
	e, err := newEdge(Ports{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	s := e.servers[0]
	for range 3 {
		if err := s.start(); err != nil {
			t.Fatal(err)
		}
		for _, port := range []int{s.sipPort, s.httpPort} {
			c, err := net.Dial("tcp", address(port))
			if err != nil {
				t.Fatal(err)
			}
			c.Close()
		}
		was := s.running
		s.stop()
		straggler(t, was)
		for _, port := range []int{s.sipPort, s.httpPort} {
			if c, err := net.Dial("tcp", address(port)); err == nil {
				c.Close()
				t.Errorf("port %d answers after the stop", port)
			}
		}
	}
}

// straggler gives sipgo a request after the stop, as if it had been read before: no other socket may come of it.
func straggler(t *testing.T, i *incarnation) {
	t.Helper()
	msg, err := sip.ParseMessage([]byte("OPTIONS sip:as1@127.0.0.1 SIP/2.0\r\nVia: SIP/2.0/UDP " + i.edge + ";branch=z9hG4bK1\r\n" +
		"From: <sip:a@b>;tag=1\r\nTo: <sip:a@b>\r\nCall-ID: late\r\nCSeq: 1 OPTIONS\r\nContent-Length: 0\r\n\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	req := msg.(*sip.Request)
	req.SetTransport("UDP")
	req.Laddr.IP, req.Laddr.Port = loopback, i.sipPort
	req.SetDestination(i.edge)
	pool := i.ua.TransportLayer().Pool("udp")
	before := pool.Size()
	if err := i.ua.TransportLayer().WriteMsg(req); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a request of a stopped server: %v, want %v", err, net.ErrClosed)
	}
	if c, err := i.ua.TransportLayer().GetConnection("udp", i.edge); err != nil || c.LocalAddr().String() != address(i.sipPort) {
		t.Errorf("an answer of a stopped server would go out of %v, %v", c, err)
	}
	if pool.Size() != before {
		t.Errorf("%d sockets became %d", before, pool.Size())
	}
}
