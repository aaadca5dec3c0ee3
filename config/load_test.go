package config

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/wyegate/wyegate/routing"
)

// smallest is a configuration with everything left out that has a default (operations.md 3.1).
const smallest = `version: 1
listeners:
  - {protocol: sip, transport: udp, bind: ":5060"}
  - {protocol: sip, transport: tcp, bind: ":5060"}
  - {protocol: http, transport: tcp, bind: ":80"}
services:
  - {name: main, pool: appservers, affinity: {rules: data-centric-rules.xml}}
pools:
  - name: appservers
    servers:
      - {name: as1, sip: "10.0.1.11:5060", http: "10.0.1.11:8080"}
      - {name: as2, sip: "10.0.1.12:5060", http: "10.0.1.12:8080"}
`

func options() Options { return Options{HostName: "edge-1"} }

func files(pairs ...string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		fsys[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1]), Mode: 0o640}
	}
	return fsys
}

func mustLoad(t *testing.T, fsys fstest.MapFS, name string, opts Options) *Config {
	t.Helper()
	cfg, problems := Load(fsys, name, opts)
	for _, p := range problems {
		if p.Severity == Error {
			t.Fatal(p)
		}
	}
	return cfg
}

func TestSmallestConfiguration(t *testing.T) {
	cfg, problems := Load(files("wyegate.yaml", smallest, "data-centric-rules.xml", "<user-centric-rules/>"), "wyegate.yaml", options())
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	var got []string
	for _, l := range cfg.Listeners {
		got = append(got, l.Name)
	}
	if s := strings.Join(got, " "); s != "sip-udp-5060 sip-tcp-5060 http-tcp-80" {
		t.Errorf("listeners are named %s", s)
	}
	app := cfg.Services[0].Applications[0]
	if app.ServiceKind() != routing.Converged || app.Name != "main" || app.Host != nil || app.PathPrefix != "" {
		t.Errorf("default application is %+v", app)
	}
	p := cfg.Pools[0]
	if s := p.Servers[1]; s.Weight != 100 || s.SIP.String() != "10.0.1.12:5060" || s.SIPTransport != "udp" || s.HTTP.Port != 8080 {
		t.Errorf("server is %+v", s)
	}
	if p.Drain.Deadline != 2*time.Hour || p.Hash.Load != 1.10 || p.Hash.Partitions != 65521 || p.Panic.MinUsable != 0.25 {
		t.Errorf("pool is %+v", p)
	}
	if s := cfg.Admin.Sockets[0]; s.Path.Abs != "/run/wyegate/admin.sock" || s.Mode != 0o660 || s.Role != "admin" {
		t.Errorf("socket is %+v", s)
	}
	if cfg.Admin.Metrics.Address.String() != "127.0.0.1:9464" || cfg.Node.Name != "edge-1" || cfg.Node.StateDir.Abs != "/var/lib/wyegate" {
		t.Errorf("node %+v, metrics %v", cfg.Node, cfg.Admin.Metrics)
	}
	if len(cfg.RuleFiles) != 1 || string(cfg.RuleFiles[0].Data) != "<user-centric-rules/>" || len(cfg.Digest) != 64 {
		t.Errorf("rule files %v, digest %q", cfg.RuleFiles, cfg.Digest)
	}
	if at := cfg.At("pools.appservers.servers.as2.weight"); at.Line != 12 || at.Col != 9 {
		t.Errorf("a key that was left out is placed at %v", at)
	}
	if at := cfg.At("pools.appservers.servers.as2.sip"); at.Line != 12 || at.Col != 26 {
		t.Errorf("sip of as2 is placed at %v", at)
	}
}

// A file that unfolds to more than a person writes is refused, quickly and with one finding.
func TestBoundsOfOneFile(t *testing.T) {
	bomb := "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c < 'k'; c++ {
		bomb += string(c) + ": &" + string(c) + " [" + strings.Repeat("*"+string(c-1)+", ", 9) + "x]\n"
	}
	for name, text := range map[string]string{
		"aliases": "version: 1\n" + bomb, "an alias of itself": "version: 1\na: &a [*a]\n", "depth": "version: 1\na: " + strings.Repeat("[", 200) + strings.Repeat("]", 200),
		"size": "version: 1\n#" + strings.Repeat("x", maxFile),
	} {
		_, problems := Load(files("w.yaml", text), "w.yaml", options())
		bounded := 0
		for _, p := range problems {
			if p.Code == "WG002" {
				bounded++
			}
		}
		if bounded != 1 {
			t.Errorf("%s: %d findings about bounds of %d", name, bounded, len(problems))
		}
	}
}

// A large configuration is read in a moment.
func BenchmarkLoad(b *testing.B) {
	var text strings.Builder
	text.WriteString(strings.Replace(smallest, "affinity: {rules: data-centric-rules.xml}", "affinity: {}", 1))
	for i := range 1000 {
		fmt.Fprintf(&text, "      - {name: s%d, weight: 100, sip: \"10.1.%d.%d:5060\", http: \"10.1.%d.%d:8080\"}\n", i, i/250, i%250, i/250, i%250)
	}
	fsys := files("wyegate.yaml", text.String())
	b.ReportAllocs()
	for b.Loop() {
		if _, problems := Load(fsys, "wyegate.yaml", options()); HasErrors(problems) {
			b.Fatal(problems)
		}
	}
}
