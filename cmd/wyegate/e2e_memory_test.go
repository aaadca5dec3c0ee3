package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wyegate/wyegate/internal/lbtest"
)

// smallNode runs a node before one server; extra is more YAML.
func smallNode(t *testing.T, extra string) (n *node, s *lbtest.Server, sip, web, metrics int) {
	t.Helper()
	s, err := lbtest.NewServer("as1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	sip, web, metrics = freePort(t), freePort(t), freePort(t)
	n = startNode(t, map[string]string{"rules.xml": explainRules, "wyegate.yaml": fmt.Sprintf(`version: 1
node: {name: edge-1, state_dir: $DIR/state, shutdown: {delay: 0s, deadline: 1s}}
admin: {sockets: [{path: $DIR/admin.sock}], metrics: {address: "127.0.0.1:%d"}}
listeners:
  - {name: sip-udp, protocol: sip, transport: udp, bind: "127.0.0.1:%d"}
  - {name: sip-tcp, protocol: sip, transport: tcp, bind: "127.0.0.1:%d"}
  - {name: http, protocol: http, transport: tcp, bind: "127.0.0.1:%d"}
services:
  - {name: main, pool: appservers, affinity: {rules: rules.xml}}
pools:
  - name: appservers
    servers:
      - {name: as1, sip: %q, http: %q}
%s
`, metrics, sip, sip, web, s.Addr, s.Web, extra)})
	return n, s, sip, web, metrics
}

// resident is the memory of the node's process that is in RAM, in octets.
func (n *node) resident() int {
	n.t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.cmd.Process.Pid))
	if err != nil {
		n.t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if v, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.Atoi(strings.Fields(v)[0])
			if err != nil {
				n.t.Fatal(err)
			}
			return kb << 10
		}
	}
	n.t.Fatal("no VmRSS")
	return 0
}

// settled gives the resident memory once it no longer falls: the runtime gives pages back a while after.
func (n *node) settled() int {
	least := n.resident()
	for range 20 {
		time.Sleep(100 * time.Millisecond) // the kernel's own figure of another process: nothing to wait on
		least = min(least, n.resident())
	}
	return least
}

// An idle client costs less than 12 KiB of resident memory, and less than 40 KiB over TLS: the slope between 1,000 and 8,000
// connections, each of which was served once.
func TestIdleClientsAreCheap(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	const few, many, most, mostTLS = 1000, 8000, 12 << 10, 40 << 10
	descriptors(t, many+1000)
	n, _, sip, web, _ := smallNode(t, "limits: {connections: {per_source: 100000}, http: {idle_timeout: 10m}}")
	ca := lbtest.NewCA(t)
	ca.Files(n.dir, "front", lbtest.Leaf{Names: []string{"front.example.net"}})
	https := freePort(t)
	text, err := os.ReadFile(filepath.Join(n.dir, "wyegate.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	n.write("wyegate.yaml", strings.Replace(string(text), "services:\n", fmt.Sprintf(`  - {name: https, protocol: http, transport: tls, bind: "127.0.0.1:%d", certificate: front}
certificates: [{name: front, cert_file: front.pem, key_file: front.key}]
services:
`, https), 1))
	n.reload(false)
	page := func(r *bufio.Reader) error {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
	room := func(i int) string {
		return fmt.Sprintf("GET /room?conf=c%d HTTP/1.1\r\nHost: x.example\r\n\r\n", i)
	}
	for _, c := range []struct {
		name string
		port int
		most int
		ask  func(i int) string
		done func(*bufio.Reader) error
	}{
		{"HTTP", web, most, room, page},
		{"HTTPS", https, mostTLS, room, page},
		{"SIP over TCP", sip, most, func(i int) string {
			return fmt.Sprintf("OPTIONS sip:u%d@sip.example.net SIP/2.0\r\nVia: SIP/2.0/TCP 127.0.0.1:5;branch=z9hG4bKi%d\r\nMax-Forwards: 70\r\n"+
				"From: <sip:a@b.example>;tag=%d\r\nTo: <sip:c@d.example>\r\nCall-ID: idle%d\r\nCSeq: 1 OPTIONS\r\nContent-Length: 0\r\n\r\n", i, i, i, i)
		}, func(r *bufio.Reader) error {
			for {
				line, err := r.ReadString('\n')
				if err != nil || line == "\r\n" {
					return err
				}
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var conns []net.Conn
			defer func() {
				for _, k := range conns {
					k.Close()
				}
			}()
			open := func(to int) int {
				for len(conns) < to {
					k, err := net.Dial("tcp", mustAddr(c.port).String())
					if err != nil {
						t.Fatal(err)
					}
					if c.port == https {
						k = tls.Client(k, &tls.Config{ServerName: "front.example.net", RootCAs: ca.Trust()})
					}
					conns = append(conns, k)
					if _, err := io.WriteString(k, c.ask(len(conns))); err != nil {
						t.Fatal(err)
					}
					_ = k.SetReadDeadline(time.Now().Add(10 * time.Second))
					if err := c.done(bufio.NewReaderSize(k, 512)); err != nil {
						t.Fatalf("connection %d: %v", len(conns), err)
					}
				}
				return n.settled()
			}
			at := open(few)
			slope := (open(many) - at) / (many - few)
			t.Logf("%d octets of resident memory for each of %d idle clients", slope, many-few)
			if slope > c.most {
				t.Errorf("an idle client costs %d octets, more than %d", slope, c.most)
			}
		})
	}
}

// Distinct keys, Call-IDs and users are no labels: their number adds no series.
func TestKeysAddNoSeries(t *testing.T) {
	n, _, sip, _, metrics := smallNode(t, "")
	count := 100_000
	if os.Getenv("WYEGATE_SOAK") != "" {
		count = 1_000_000
	}
	caller, err := lbtest.NewUA("caller", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer caller.Close()
	p, err := caller.Dial("UDP", mustAddr(sip))
	if err != nil {
		t.Fatal(err)
	}
	send := func(from, to int) {
		for i := from; i < to; i++ {
			id := strconv.Itoa(i)
			msg := "MESSAGE sip:u" + id + "@sip.example.net SIP/2.0\r\nVia: SIP/2.0/UDP " + caller.Addr.String() + ";branch=z9hG4bK" + id +
				"\r\nMax-Forwards: 70\r\nFrom: <sip:a" + id + "@b.example>;tag=" + id + "\r\nTo: <sip:c@d.example>\r\nCall-ID: key" + id +
				"\r\nCSeq: 1 MESSAGE\r\nX-Group: group-" + id + "\r\nContent-Length: 0\r\n\r\n"
			if err := caller.Send(p, []byte(msg)); err != nil {
				t.Fatal(err)
			}
			if i%200 == 0 {
				time.Sleep(2 * time.Millisecond) // a rate that the socket buffers of a busy test machine hold
			}
		}
	}
	send(0, 1000)
	before := series(t, metrics)
	send(1000, count)
	n.eventually(30*time.Second, "the messages are counted", func() error {
		if got := counted(t, metrics); got < float64(count)*0.9 {
			return fmt.Errorf("%g of %d requests by rule", got, count)
		}
		return nil
	})
	if after := series(t, metrics); after != before {
		t.Errorf("%d series before, %d after %d distinct keys", before, after, count)
	}
}

func scrape(t *testing.T, port int) []byte {
	t.Helper()
	r, err := http.Get("http://" + mustAddr(port).String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	data, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func series(t *testing.T, port int) int {
	n := 0
	for line := range bytes.Lines(scrape(t, port)) {
		if bytes.HasPrefix(line, []byte("wyegate_")) {
			n++
		}
	}
	return n
}

func counted(t *testing.T, port int) float64 {
	for line := range bytes.Lines(scrape(t, port)) {
		if bytes.HasPrefix(line, []byte("wyegate_key_total{")) && bytes.Contains(line, []byte(`protocol="sip"`)) && bytes.Contains(line, []byte(`source="rule"`)) {
			v, err := strconv.ParseFloat(strings.Fields(string(line))[1], 64)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
	return 0
}
