package demo

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Names of the files in the demo's folder.
const (
	configName = "wyegate.yaml"
	rulesName  = "data-centric-rules.xml"
	socketName = "admin.sock"
	accessName = "access.log"
)

// longestSocket is what fits into a socket address on every system, with the final NUL.
const longestSocket = 103

// makeFolder makes the folder of a demo. Where the system's folder for such things has a long name, the socket would not
// fit into its address; then it is in /tmp.
func makeFolder() (string, error) {
	dir, err := os.MkdirTemp("", "wyegate-demo-")
	if err != nil || len(filepath.Join(dir, socketName)) <= longestSocket {
		return dir, err
	}
	if err := os.Remove(dir); err != nil {
		return "", err
	}
	return os.MkdirTemp("/tmp", "wyegate-demo-")
}

// rules are those of operations.md 3.6: the room, out of a call and out of a page.
const rules = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE user-centric-rules SYSTEM "dcr.dtd">
<!-- Key of a conference bridge: the room. A call to sip:room-4711@sip.example.net and a page /room?conf=room-4711 must
     meet on one server. -->
<user-centric-rules>
  <sip-rules>
    <if>
      <!-- originating leg in an IMS: the asserted user owns the session -->
      <session-case>
        <equal>ORIGINATING</equal>
        <header name="P-Asserted-Identity" return="request.P-Asserted-Identity.uri.resolve.user">
          <exist/>
        </header>
      </session-case>
      <else return="request.To.uri.resolve.user"/>
    </if>
  </sip-rules>
  <http-rules>
    <or>
      <request-uri parameter="conf" return="parameter.conf">
        <exist/>
      </request-uri>
      <header name="X-Conference" return="request.X-Conference">
        <exist/>
      </header>
      <cookie name="conf" return="cookie.conf">
        <exist/>
      </cookie>
    </or>
  </http-rules>
</user-centric-rules>
`

// configText is the configuration of operations.md 3.2 moved to loopback, one node, without the sections that need another
// build. Probes are frequent, so that a server that is back is seen in a
// second. note is free text; changing it is a change of the
// configuration that changes no decision.
func (e *edge) configText(note string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Configuration of the demo; the folder goes when the demo ends.
version: 1
node:
  name: demo
  note: %q
  state_dir: state
  shutdown: {delay: 0s, deadline: 1s}

sites:
  - {name: ams, rank: 1}
  - {name: fra, rank: 2}
site_policy: {mode: all-active}

admin:
  sockets:
    - {path: %s, mode: "0600", role: admin}
  metrics: {address: %q}

listeners:
  - {name: sip-udp, protocol: sip, transport: udp, bind: %q, services: [voice]}
  - {name: sip-tcp, protocol: sip, transport: tcp, bind: %q, services: [voice]}
  - {name: http, protocol: http, transport: tcp, bind: %q, services: [voice, portal]}

services:
  - name: voice
    pool: appservers
    applications:
      - {name: conference, kind: converged, host: [phone.example.net, sip.example.net], path_prefix: /room}
      - {name: help, kind: web, host: [phone.example.net], path_prefix: /help}
    affinity: {rules: %s}
    trust_headers_from: [127.0.0.0/8]   # the phones stand for a trusted network: P-Asserted-Identity counts
  - name: portal
    pool: web
    applications:
      - {name: portal, kind: web, host: [www.example.net]}

pools:
  - name: appservers
    health:
      # A stopped server refuses, and that is certain at once. Silence is given time: on a busy machine it means nothing.
      passive: {consecutive_failures: 50}
      active:
        sip: {interval: 500ms, down_interval: 250ms, timeout: 5s, fall: 3, rise: 2}
        http: {path: /healthz, interval: 500ms, down_interval: 250ms, timeout: 5s, fall: 3, rise: 2}
    servers:
`, note, socketName, address(e.metrics), address(e.sipPort), address(e.sipPort), address(e.httpPort), rulesName)
	for i, s := range e.servers {
		fmt.Fprintf(&b, "      - {name: %s, site: %s, sip: %q, sip_transport: %s, http: %q}\n",
			s.name, [...]string{"ams", "fra"}[i/2%2], address(s.sipPort), s.transport, address(s.httpPort))
	}
	b.WriteString("  - name: web\n    servers:\n")
	for i, s := range e.servers[len(e.servers)-2:] {
		fmt.Fprintf(&b, "      - {name: web%d, http: %q}\n", i+1, address(s.httpPort))
	}
	fmt.Fprintf(&b, "\nlogging: {access: %s}\n", accessName)
	return b.String()
}

// write puts a file of the demo into place in one step: whoever reads it sees the old or the new one.
func (e *edge) write(name, text string) error {
	path := filepath.Join(e.dir, name)
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
