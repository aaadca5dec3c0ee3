package resolver

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// unbound runs the resolver of that name over a zone of its own until the test ends, and gives its address.
func unbound(t *testing.T, zone ...string) string {
	t.Helper()
	program, err := exec.LookPath("unbound")
	if err != nil {
		if program = "/usr/sbin/unbound"; !exists(program) {
			if os.Getenv("WYEGATE_CI") != "" {
				t.Fatal("unbound is missing: make peers installs it")
			}
			t.Skip("unbound is missing: make peers installs it")
		}
	}
	pc, l := onePort(t)
	addr := pc.LocalAddr().String()
	_, port, _ := net.SplitHostPort(addr)
	_ = pc.Close()
	_ = l.Close()
	var b strings.Builder
	fmt.Fprintf(&b, "server:\n do-daemonize: no\n chroot: \"\"\n username: \"\"\n pidfile: \"\"\n use-syslog: no\n interface: 127.0.0.1@%s\n access-control: 127.0.0.0/8 allow\n num-threads: 1\n do-ip6: no\n local-zone: \"example.net.\" static\n", port)
	for _, line := range zone {
		fmt.Fprintf(&b, " local-data: '%s'\n", line)
	}
	b.WriteString("remote-control:\n control-enable: no\n")
	file := filepath.Join(t.TempDir(), "unbound.conf")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd := exec.Command(program, "-d", "-c", file)
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("unbound said: %s", said.String())
		}
	})
	q := new(dns.Msg)
	q.SetQuestion("example.net.", dns.TypeSOA)
	c := dns.Client{Timeout: 200 * time.Millisecond}
	until(t, "unbound answers", func() bool {
		_, _, err := c.Exchange(q, addr)
		return err == nil
	})
	return addr
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// SX-14 with a resolver that is not ours: NAPTR and SRV as it spells them, a set of records that does not fit into a datagram,
// and how long it says that there is none.
func TestSX14_Unbound(t *testing.T) {
	zone := append([]string{"example.net. 3600 IN SOA ns.example.net. h.example.net. 1 3600 900 86400 33"}, rfc3263...)
	for i := range 60 {
		zone = append(zone, fmt.Sprintf("_sip._tcp.large.example.net. 60 IN SRV %d 1 5060 host-with-quite-a-long-name-%02d.example.net.", i, i),
			fmt.Sprintf("host-with-quite-a-long-name-%02d.example.net. 60 IN A 198.51.100.%d", i, i))
	}
	addr := unbound(t, zone...)
	n := NewNext(HostsConfig{Client: Client{Resolvers: []string{addr}}, File: "/dev/null"})
	run(t, n.Run)
	for h, want := range map[Hop]string{
		{Host: "both.example.net"}:                  "tcp 192.0.2.2:5081, udp 192.0.2.1:5080, tls 192.0.2.3:5082",
		{Host: "Both.Example.NET", Secure: true}:    "tls 192.0.2.3:5082",
		{Host: "plain.example.net"}:                 "udp 192.0.2.1:5071, udp 192.0.2.3:5070, tcp 192.0.2.2:5072",
		{Host: "none.example.net"}:                  "",
		{Host: "two.example.net", Transport: TCP}:   "tcp 192.0.2.4:5060, tcp 192.0.2.5:5060, tcp [2001:db8::4]:5060",
		{Host: "nobody.example.net", Port: 5060}:    "",
		{Host: "plain.example.net", Transport: TLS}: "tls 192.0.2.99:5061",
	} {
		if got := inWords(places(t, n, h, 1)); got != want {
			t.Errorf("%+v: %s, want %s", h, got, want)
		}
	}
	large := places(t, n, Hop{Host: "large.example.net", Transport: TCP}, 1)
	if len(large) != hopRecords || large[0].Addr.String() != "198.51.100.0:5060" || large[15].Addr.String() != "198.51.100.15:5060" {
		t.Errorf("a set that needs TCP: %s", inWords(large))
	}
	h := Hop{Host: "nobody.example.net", Port: 5060}
	n.mu.Lock()
	a, _ := n.cache.find(h, time.Now())
	n.mu.Unlock()
	if left := time.Until(time.Unix(0, a.ends)); left > 33*time.Second || left < 20*time.Second {
		t.Errorf("\"there is none\" is believed for %v more", left)
	}
}
