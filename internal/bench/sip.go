package main

import (
	"context"
	"embed"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/wyegate/wyegate/internal/bench/sipload"
)

//go:embed conf
var conf embed.FS

// sipProtocol compares SIP over UDP: wyegate with all that it does, Kamailio that forwards without state, and Kamailio
// with transactions. Kamailio runs with its tuned allocators: Debian's default, a debugging one, makes it three times
// slower and is no fair reference.
var sipProtocol = protocol{
	name: "sip", unit: "message",
	loads:   []string{"options", "call", "dialog"},
	targets: sipTargets,
	ends:    func() (ends, error) { return newSIPEnds() },
}

func sipTargets(s *settings, load string, servers []string) ([]*target, error) {
	kamailio, err := exec.LookPath("kamailio")
	if err != nil {
		if kamailio = "/usr/sbin/kamailio"; !exists(kamailio) {
			return nil, fmt.Errorf("%w: kamailio", errMissing)
		}
	}
	list := ""
	for _, a := range servers {
		list += "7 sip:" + a + "\n"
	}
	files := map[string]string{"dispatcher.list": list}
	for name, from := range map[string]string{"kamailio.cfg": "conf/kamailio.cfg", "rules.xml": "conf/rules.xml"} {
		b, err := conf.ReadFile(from)
		if err != nil {
			return nil, err
		}
		files[name] = string(b)
	}
	var out []*target
	for _, k := range []struct {
		name string
		args []string
	}{
		{"kamailio-forward", []string{"-x", "fm", "-X", "fm", "-m", "64", "-M", "32"}},
		{"kamailio-t_relay", []string{"-x", "tlsf", "-X", "tlsf", "-m", "3072", "-M", "32", "-A", "STATEFUL"}},
	} {
		t := kamailioTarget(kamailio, k.name, s.dir, k.args)
		if load == sipload.Dialog.String() {
			t.command = append(t.command, "-A", "ROUTES")
		}
		out = append(out, t)
	}
	for name, program := range map[string]string{"wyegate": s.wyegate, "before": s.before} {
		if program == "" {
			continue
		}
		w, err := wyegateTarget(s.dir, name, program, "conf/wyegate-sip.yaml", files, servers)
		if err != nil {
			return nil, err
		}
		out = slices.Insert(out, 1, w)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

func kamailioTarget(program, name, dir string, args []string) *target {
	addr := freePort("udp4")
	_, port, _ := net.SplitHostPort(addr)
	cmd := append([]string{
		program, "-DD", "-E", "-f", filepath.Join(dir, "kamailio.cfg"), "-Y", dir,
		"-A", "PORT=" + port, "-A", "LIST=\"" + filepath.Join(dir, "dispatcher.list") + "\"",
	}, args...)
	return &target{name: name, command: cmd, addr: addr, ready: func() error { return answers(addr) }}
}

// wyegateTarget fills the configuration in: where to listen, where the servers are.
func wyegateTarget(dir, name, program, from string, files map[string]string, servers []string) (*target, error) {
	b, err := conf.ReadFile(from)
	if err != nil {
		return nil, err
	}
	if program, err = filepath.Abs(program); err != nil {
		return nil, err
	}
	addr := freePort("udp4")
	files[name+".yaml"] = strings.NewReplacer(
		"@NAME@", name, "@LISTEN@", addr, "@METRICS@", freePort("tcp4"), "@SERVER1@", servers[0], "@SERVER2@", servers[1],
	).Replace(string(b))
	return &target{
		name: name, addr: addr, ready: func() error { return answers(addr) },
		command: []string{program, "run", "-c", filepath.Join(dir, name+".yaml")},
	}, nil
}

// freePort asks the kernel for a port on loopback that nobody has. It is given back before the target takes it, which
// is good enough here: a target that cannot bind says so, and the comparison ends.
func freePort(network string) string {
	if network == "udp4" {
		c, err := net.ListenPacket(network, "127.0.0.1:0")
		if err != nil {
			return ""
		}
		defer c.Close()
		return c.LocalAddr().String()
	}
	l, err := net.Listen(network, "127.0.0.1:0")
	if err != nil {
		return ""
	}
	defer l.Close()
	return l.Addr().String()
}

// answers is nil when a proxy has forwarded an OPTIONS to a server and its 200 back.
func answers(addr string) error {
	c, err := net.Dial("udp4", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	from := c.LocalAddr().String()
	id := time.Now().UnixNano()
	_, err = fmt.Fprintf(c, "OPTIONS sip:ready@proxy.example SIP/2.0\r\nVia: SIP/2.0/UDP %s;rport;branch=z9hG4bKr%d\r\nMax-Forwards: 70\r\n"+
		"From: <sip:ready@caller.example>;tag=r%d\r\nTo: <sip:ready@proxy.example>\r\nCall-ID: r%d@caller.example\r\nCSeq: 1 OPTIONS\r\nContent-Length: 0\r\n\r\n", from, id, id, id)
	if err != nil {
		return err
	}
	if err := c.SetReadDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
		return err
	}
	b := make([]byte, 4096)
	n, err := c.Read(b)
	if err != nil {
		return err
	}
	if first, _, _ := strings.Cut(string(b[:n]), "\r\n"); !strings.HasPrefix(first, "SIP/2.0 200") {
		return fmt.Errorf("it answered %q", first)
	}
	return nil
}

// sipEnds are sipload's ends in the words of the driver.
type sipEnds struct{ *sipload.Ends }

func newSIPEnds() (ends, error) {
	e, err := sipload.New(2)
	if err != nil {
		return nil, err
	}
	return sipEnds{e}, nil
}

// Run runs one load.
func (e sipEnds) Run(ctx context.Context, o order) (outcome, error) {
	l := sipload.Load{Window: o.Window, Rate: o.Rate, Time: o.Time}
	var err error
	if l.Proxy, err = netip.ParseAddrPort(o.Addr); err != nil {
		return outcome{}, err
	}
	if err := l.Mode.UnmarshalText([]byte(o.Load)); err != nil {
		return outcome{}, err
	}
	r, err := e.Ends.Run(ctx, l)
	return outcome{
		Count: float64(r.Messages), Rate: r.Rate, Begun: float64(r.Units) / r.Seconds,
		P50: r.P50, P99: r.P99, Lost: float64(r.Lost), Faults: float64(r.Moved + r.Unlike),
	}, err
}
