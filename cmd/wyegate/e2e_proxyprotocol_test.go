package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// running runs a program that ends at SIGTERM, until the test ends.
func running(t *testing.T, program string, args ...string) {
	t.Helper()
	log := &logBuffer{}
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(5 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
		}
		if t.Failed() {
			t.Logf("%s said: %s", program, tail(log.String()))
		}
	})
}

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Section 14 on both sides with programs that others wrote: HAProxy in front sends PROXY headers, version 1 or 2, nginx
// behind demands them, and tells whom it was told of. Health probes get through to it as well.
func TestProxyProtocolBetweenHAProxyAndNginx(t *testing.T) {
	nginx, haproxy := needs(t, "nginx"), needs(t, "haproxy")
	web := freePort(t)
	dir := t.TempDir()
	running(t, nginx, "-p", dir, "-e", filepath.Join(dir, "error.log"), "-c", file(t, "nginx.conf", fmt.Sprintf(`daemon off;
master_process off;
pid %[1]s/pid;
events {}
http {
	access_log off;
	client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
	server {
		listen 127.0.0.1:%[2]d proxy_protocol;
		location / { return 200 "$proxy_protocol_addr $proxy_protocol_port $remote_addr"; }
	}
}
`, dir, web)))
	for version, send := range map[string]string{"v1": "send-proxy", "v2": "send-proxy-v2"} {
		t.Run(version, func(t *testing.T) {
			edge, front := freePort(t), freePort(t)
			n := startNode(t, map[string]string{"wyegate.yaml": fmt.Sprintf(`version: 1
node: {name: edge-1, state_dir: $DIR/state, shutdown: {delay: 0s, deadline: 1s}}
admin: {sockets: [{path: $DIR/admin.sock}], metrics: {address: "127.0.0.1:0"}}
listeners:
  - {name: http, protocol: http, transport: tcp, bind: "127.0.0.1:%d", proxy_protocol_from: [127.0.0.1]}
services:
  - {name: main, pool: web, applications: [{name: portal, kind: web}]}
pools:
  - name: web
    connect: {proxy_protocol: %s}
    health: {active: {http: {interval: 200ms, down_interval: 200ms}}}
    servers:
      - {name: nginx, http: "127.0.0.1:%d"}
`, edge, version, web)})
			running(t, haproxy, "-db", "-f", file(t, "haproxy.cfg", fmt.Sprintf(`defaults
	mode tcp
	timeout connect 5s
	timeout client 10s
	timeout server 10s
listen l
	bind 127.0.0.1:%d
	server edge 127.0.0.1:%d %s
`, front, edge, send)))
			n.eventually(15*time.Second, "nginx is up by its probes", func() error {
				out, _ := n.cli("servers", "list")
				if !strings.Contains(out, " up ") {
					return fmt.Errorf("%s", out)
				}
				return nil
			})
			for range 3 {
				var from net.Addr
				client := &http.Client{Transport: &http.Transport{DialContext: nil, DisableKeepAlives: true, Dial: func(network, addr string) (net.Conn, error) {
					c, err := net.Dial(network, addr)
					if err == nil {
						from = c.LocalAddr()
					}
					return c, err
				}}, Timeout: 5 * time.Second}
				var r *http.Response
				n.eventually(10*time.Second, "an answer through HAProxy", func() (err error) {
					r, err = client.Get(fmt.Sprintf("http://127.0.0.1:%d/", front))
					return err
				})
				body, err := io.ReadAll(r.Body)
				r.Body.Close()
				want := strings.Replace(from.String(), ":", " ", 1)
				if err != nil || r.StatusCode != 200 || !strings.HasPrefix(string(body), want+" ") {
					t.Errorf("%d %q, %v; want %q", r.StatusCode, body, err, want)
				}
			}
		})
	}
}
