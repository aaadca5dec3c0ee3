package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wyegate/wyegate/internal/lbtest"
)

// TestMain lets the test binary be an application server of its own process, so that one can be killed.
func TestMain(m *testing.M) {
	if name := os.Getenv("WYEGATE_TEST_SERVER"); name != "" {
		serveForever(name)
		return
	}
	code := m.Run()
	if built != "" {
		_ = os.RemoveAll(built)
	}
	os.Exit(code)
}

func serveForever(name string) {
	s, err := lbtest.NewServer(name)
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	fmt.Println(s.Addr, s.Web)
	select {}
}

// process is an application server in a process of its own.
type process struct {
	name, sip, web string
	cmd            *exec.Cmd
}

func startProcess(t *testing.T, name string) *process {
	t.Helper()
	p := &process{name: name, cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), "WYEGATE_TEST_SERVER="+name)
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
	if _, err := fmt.Fscan(out, &p.sip, &p.web); err != nil {
		t.Fatalf("server %s: %v", name, err)
	}
	return p
}

// trafficLoad makes calls and requests until it is told to stop, and remembers each that failed with the time of its start.
type trafficLoad struct {
	mu       sync.Mutex
	failures []failure
	calls    atomic.Int64
	pages    atomic.Int64
	done     []success
}

// success is a call that was answered.
type success struct {
	began  time.Time
	server string
}

// since counts the calls by server that have begun after a time.
func (l *trafficLoad) since(begin time.Time) map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[string]int{}
	for _, s := range l.done {
		if s.began.After(begin) {
			out[s.server]++
		}
	}
	return out
}

type failure struct {
	began time.Time
	what  string
	err   error
}

func (l *trafficLoad) fail(began time.Time, what string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures = append(l.failures, failure{began, what, err})
}

// every calls f at a rate until the context ends; all that it began is waited for.
func every(ctx context.Context, perSecond int, f func(i int)) {
	var wg sync.WaitGroup
	defer wg.Wait()
	t := time.NewTicker(time.Second / time.Duration(perSecond))
	defer t.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			wg.Go(func() { f(i) })
		}
	}
}

// copies is when a user agent sends an INVITE again over UDP (RFC 3261 17.1.1.2), a little past the edge's own timers.
var copies = []time.Duration{500 * time.Millisecond, 1500 * time.Millisecond, 3500 * time.Millisecond, 7500 * time.Millisecond}

// call makes one call as a user agent over UDP does, with copies of its INVITE, or over a TCP connection.
func (l *trafficLoad) call(ua *lbtest.UA, p *lbtest.Path, i int) {
	began := time.Now()
	id := fmt.Sprintf("load-%s-%d", p.Transport, i)
	uri := fmt.Sprintf("sip:room-%d@sip.example.net", i%500)
	branch := ua.Branch()
	lines := []string{"INVITE " + uri + " SIP/2.0", "Max-Forwards: 70", "From: <sip:a@b.example>;tag=" + id, "To: <" + uri + ">", "Call-ID: " + id,
		"CSeq: 1 INVITE", "Contact: <sip:a@" + ua.Addr.String() + ">"}
	tr, err := ua.Start(p, branch, lines...)
	if err != nil {
		l.fail(began, id, err)
		return
	}
	defer tr.End()
	answered := make(chan struct{})
	defer close(answered)
	if p.Transport == "UDP" {
		go func() {
			for _, at := range copies {
				select {
				case <-answered:
					return
				case <-time.After(at - time.Since(began)):
					_ = ua.Send(p, tr.Raw)
				}
			}
		}()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 12*time.Second)
	defer cancel()
	m, err := tr.Final(ctx)
	switch {
	case err != nil:
		l.fail(began, id, err)
	case m.Status != 200:
		l.fail(began, id, fmt.Errorf("%d", m.Status))
	default:
		l.calls.Add(1)
		l.mu.Lock()
		l.done = append(l.done, success{began, m.Header("X-Server")})
		l.mu.Unlock()
	}
}

func (l *trafficLoad) page(client *http.Client, port, i int) {
	began := time.Now()
	r, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d/?conf=room-%d", port, i%500))
	if err != nil {
		l.fail(began, "page", err)
		return
	}
	r.Body.Close()
	if r.StatusCode != 200 {
		l.fail(began, "page", fmt.Errorf("%d", r.StatusCode))
		return
	}
	l.pages.Add(1)
}

// A server dies under 200 calls and 500 requests a second: no new call and no idempotent request fails, apart from those
// that were in service there.
func TestKilledServerCostsNobody(t *testing.T) {
	var list strings.Builder
	var servers []*process
	for i := range 4 {
		s := startProcess(t, fmt.Sprintf("as%d", i+1))
		servers = append(servers, s)
		fmt.Fprintf(&list, "      - {name: %s, sip: %q, http: %q}\n", s.name, s.sip, s.web)
	}
	sip, web := freePort(t), freePort(t)
	c := cluster{sip: sip, web: web, rules: withRules, pool: fast}
	yaml := strings.Replace(c.yaml(), "    servers:\n", "    servers:\n"+list.String(), 1)
	n := startNode(t, map[string]string{"rules.xml": roomRules, "wyegate.yaml": yaml})
	udp, err := lbtest.NewUA("udp", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	tcp, err := lbtest.NewUA("tcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	up, err := udp.Dial("UDP", mustAddr(sip))
	if err != nil {
		t.Fatal(err)
	}
	tp, err := tcp.Dial("TCP", mustAddr(sip))
	if err != nil {
		t.Fatal(err)
	}
	defer tp.Close()
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	defer client.CloseIdleConnections()
	l := &trafficLoad{}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { every(ctx, 100, func(i int) { l.call(udp, up, i) }) })
	running.Go(func() { every(ctx, 100, func(i int) { l.call(tcp, tp, i) }) })
	running.Go(func() { every(ctx, 500, func(i int) { l.page(client, web, i) }) })
	time.Sleep(3 * time.Second) // the load's own length
	killed := time.Now()
	if err := servers[1].cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(5 * time.Second) // the load's own length
	stop()
	running.Wait()
	inService := 0
	for _, f := range l.failures {
		if f.began.Before(killed) && killed.Sub(f.began) < time.Second {
			inService++
			continue
		}
		t.Errorf("%s, begun %s after the kill: %v", f.what, f.began.Sub(killed).Round(time.Millisecond), f.err)
	}
	t.Logf("%d calls, %d pages; %d in service at the dead server failed", l.calls.Load(), l.pages.Load(), inService)
	if l.calls.Load() < 500 || l.pages.Load() < 1000 { // a busy machine does not keep the rate
		t.Errorf("the load was too small to prove anything")
	}
	if inService > 20 {
		t.Errorf("%d failures are more than were in service", inService)
	}
	_ = n
}
