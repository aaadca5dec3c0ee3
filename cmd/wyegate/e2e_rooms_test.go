package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wyegate/wyegate/internal/lbtest"
	"github.com/wyegate/wyegate/internal/sip"
)

// roomRules is example E of the rule language: the room is the user of To, or the parameter conf of a page.
const roomRules = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE user-centric-rules SYSTEM "dcr.dtd">
<user-centric-rules>
  <sip-rules>
    <if>
      <session-case><equal>ORIGINATING</equal>
        <header name="P-Asserted-Identity" return="request.P-Asserted-Identity.uri.resolve.user"><exist/></header>
      </session-case>
      <else return="request.To.uri.resolve.user"/>
    </if>
  </sip-rules>
  <http-rules>
    <or>
      <request-uri parameter="conf" return="parameter.conf"><exist/></request-uri>
      <header name="X-Conference" return="request.X-Conference"><exist/></header>
      <cookie name="conf" return="cookie.conf"><exist/></cookie>
    </or>
  </http-rules>
</user-centric-rules>
`

// cluster is an edge before application servers of this process.
type cluster struct {
	*node
	servers  []*lbtest.Server
	sip, web int
	rules    string // affinity of the service; empty: none
	apps     string // applications; empty: the default one
	pool     string // more keys of the pool, indented by four
}

// startCluster runs an edge with n servers.
func startCluster(t *testing.T, n int, c cluster) *cluster {
	t.Helper()
	for i := range n {
		s, err := lbtest.NewServer(fmt.Sprintf("as%d", i+1))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		c.servers = append(c.servers, s)
	}
	c.sip, c.web = freePort(t), freePort(t)
	c.node = startNode(t, map[string]string{"rules.xml": roomRules, "wyegate.yaml": c.yaml(c.servers...)})
	return &c
}

// yaml is the configuration over some servers.
func (c *cluster) yaml(servers ...*lbtest.Server) string {
	var b strings.Builder
	fmt.Fprintf(&b, `version: 1
node: {name: edge-1, state_dir: $DIR/state, shutdown: {delay: 0s, deadline: 2s}}
admin: {sockets: [{path: $DIR/admin.sock}], metrics: {address: "127.0.0.1:0"}}
listeners:
  - {name: sip-udp, protocol: sip, transport: udp, bind: "127.0.0.1:%[1]d"}
  - {name: sip-tcp, protocol: sip, transport: tcp, bind: "127.0.0.1:%[1]d"}
  - {name: http, protocol: http, transport: tcp, bind: "127.0.0.1:%[2]d"}
services:
  - name: main
    pool: appservers
%[3]s%[4]spools:
  - name: appservers
%[5]s    servers:
`, c.sip, c.web, c.apps, c.rules, c.pool)
	for _, s := range servers {
		fmt.Fprintf(&b, "      - {name: %s, sip: %q, http: %q}\n", s.Name, s.Addr, s.Web)
	}
	b.WriteString("logging: {access: $DIR/access.log}\n")
	return b.String()
}

const withRules = "    affinity: {rules: rules.xml}\n"

// fast are health timers for tests in which a server dies.
const fast = "    health: {active: {sip: {interval: 500ms, down_interval: 200ms, timeout: 400ms, fall: 2, rise: 2}, http: {interval: 500ms, down_interval: 200ms, timeout: 400ms, fall: 2, rise: 2}}}\n"

// rooms writes an injection file for SIPp.
func rooms(t *testing.T, from, to int) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("SEQUENTIAL\n")
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, "room-%d;udp;\n", i)
	}
	name := filepath.Join(t.TempDir(), "rooms.csv")
	if err := os.WriteFile(name, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// One thousand rooms: SIPp calls room-N over UDP and over TCP, a page asks for conf=room-N, and all three meet on one
// server, a thousand times.
func TestCallsAndPagesOfOneRoomMeet(t *testing.T) {
	const count = 1000
	c := startCluster(t, 4, cluster{rules: withRules})
	for _, transport := range []string{"u1", "t1"} {
		uac := sipp(t, "uac.xml", freePort(t), "-t", transport, "-inf", rooms(t, 0, count), "-r", "100", "-m", fmt.Sprint(count), "-timeout", "60",
			fmt.Sprintf("127.0.0.1:%d", c.sip))
		if ok, failed := uac(); ok != count || failed != 0 {
			t.Fatalf("%s: %d calls, %d failed", transport, ok, failed)
		}
	}
	where := map[string]map[string]int{} // room → server → INVITEs
	byes := 0
	for _, s := range c.servers {
		for _, m := range s.Seen() {
			switch m.MethodName() {
			case "INVITE":
				u, err := sip.ParseURI(m.Bytes(m.URI))
				if err != nil {
					t.Fatal(err)
				}
				if where[string(u.User)] == nil {
					where[string(u.User)] = map[string]int{}
				}
				where[string(u.User)][s.Name]++
			case "BYE":
				byes++
				if d := s.DialogOf(m.CallIDText()); d == nil {
					t.Errorf("a BYE reached %s, which never had its call", s.Name)
				}
			}
		}
	}
	if byes < 2*count {
		t.Errorf("%d BYEs for %d calls", byes, 2*count)
	}
	used := map[string]int{}
	for i := range count {
		room := fmt.Sprintf("room-%d", i)
		if len(where[room]) != 1 {
			t.Errorf("%s was at %v", room, where[room])
			continue
		}
		server := c.page(t, "/?conf="+room)
		used[server]++
		if where[room][server] == 0 {
			t.Errorf("%s: calls at %v, page at %s", room, where[room], server)
		}
	}
	for _, s := range c.servers {
		if used[s.Name] < count/4*80/100 || used[s.Name] > count/4*120/100 {
			t.Errorf("%s has %d of %d rooms", s.Name, used[s.Name], count)
		}
	}
	curl := needs(t, "curl")
	for i := range 20 {
		room := fmt.Sprintf("room-%d", i*50)
		out, err := exec.Command(curl, "-s", fmt.Sprintf("http://127.0.0.1:%d/?conf=%s", c.web, room)).Output()
		if err != nil || where[room][strings.TrimSpace(string(out))] == 0 {
			t.Errorf("curl for %s: %q, %v; calls at %v", room, out, err, where[room])
		}
	}
}

// page asks for a page and gives the server that answered.
func (c *cluster) page(t *testing.T, path string, header ...string) string {
	t.Helper()
	server, status, _ := c.get(t, path, header...)
	if status != 200 {
		t.Fatalf("GET %s: %d", path, status)
	}
	return server
}

func (c *cluster) get(t *testing.T, path string, header ...string) (server string, status int, cookies []*http.Cookie) {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d%s", c.web, path), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.Header.Get("X-Server"), resp.StatusCode, resp.Cookies()
}
