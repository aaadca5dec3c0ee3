package lbtest

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"github.com/wyegate/wyegate/internal/sip"
)

// Dialog is one side of a dialog: what RFC 3261 section 12 has a user agent remember.
type Dialog struct {
	ua      *UA
	path    *Path
	CallID  string
	Local   string   // our From or To value with our tag
	Remote  string   // the other side's
	Target  string   // URI of the other side's Contact
	Routes  []string // route set, in the order to be sent
	cseq    int
	Invite  *Transaction // caller only
	OK      *Message     // caller: the 2xx; callee: the INVITE
	Peer    string       // name of the server that answered (field X-Server)
	invited int          // CSeq number of the INVITE
}

// InviteOptions says what a call looks like.
type InviteOptions struct {
	RequestURI string
	From, To   string // URIs
	CallID     string
	Extra      []string // header lines
}

// Invite calls through p and waits for the final response; a 2xx is ACKed along the route set.
func (ua *UA) Invite(ctx context.Context, p *Path, o InviteOptions) (*Dialog, *Message, error) {
	n := ua.seq.Add(1)
	if o.CallID == "" {
		o.CallID = fmt.Sprintf("call-%d@%s", n, ua.Name)
	}
	if o.From == "" {
		o.From = "sip:caller@" + ua.Addr.String()
	}
	if o.To == "" {
		o.To = o.RequestURI
	}
	d := &Dialog{ua: ua, path: p, CallID: o.CallID, Local: fmt.Sprintf("<%s>;tag=%s%d", o.From, ua.Name, n), cseq: 1, invited: 1}
	lines := append([]string{
		"INVITE " + o.RequestURI + " SIP/2.0",
		"Max-Forwards: 70",
		"From: " + d.Local,
		"To: <" + o.To + ">",
		"Call-ID: " + o.CallID,
		"CSeq: 1 INVITE",
		ua.ContactLine(p),
	}, o.Extra...)
	t, err := ua.Start(p, ua.Branch(), lines...)
	if err != nil {
		return nil, nil, err
	}
	d.Invite = t
	m, err := t.Final(ctx)
	if err != nil {
		return d, nil, err
	}
	d.OK, d.Peer = m, m.Header("X-Server")
	d.Remote = string(m.Value(sip.To))
	if m.Status >= 300 {
		return d, m, ua.Send(p, ua.build(p, t.Branch, []string{
			"ACK " + o.RequestURI + " SIP/2.0", "Max-Forwards: 70", "From: " + d.Local, "To: " + d.Remote, "Call-ID: " + o.CallID, "CSeq: 1 ACK",
		}))
	}
	d.Target = m.Contact()
	rr := m.routes(sip.RecordRoute)
	for i := len(rr) - 1; i >= 0; i-- {
		d.Routes = append(d.Routes, rr[i])
	}
	ua.remember(d)
	return d, m, d.send("ACK", d.invited, ua.Branch())
}

// ContactLine is the Contact by which others reach this UA on a path.
func (ua *UA) ContactLine(p *Path) string {
	if p.Transport == "UDP" {
		return fmt.Sprintf("Contact: <sip:%s@%s>", ua.Name, ua.Addr)
	}
	transport := strings.ToLower(p.Transport)
	if transport == "wss" {
		transport = "ws" // RFC 7118 section 5
	}
	return fmt.Sprintf("Contact: <sip:%s@%s;transport=%s>", ua.Name, ua.host(p), transport)
}

// Accept answers an INVITE with 200 and makes the callee's side of the dialog.
func (ua *UA) Accept(m *Message, p *Path) *Dialog {
	tag := fmt.Sprintf("%s%d", ua.Name, ua.seq.Add(1))
	d := &Dialog{
		ua: ua, path: p, CallID: m.CallIDText(), Remote: string(m.Value(sip.From)),
		Local: string(m.Value(sip.To)) + ";tag=" + tag, Target: m.Contact(), Routes: m.routes(sip.RecordRoute), OK: m,
	}
	ua.remember(d) // before the answer: whoever gets it may ask for the dialog
	m.Reply(ua.describe(m.Response(200, "OK", tag, "X-Server: "+ua.Name, ua.ContactLine(p))))
	return d
}

func (ua *UA) remember(d *Dialog) {
	ua.mu.Lock()
	defer ua.mu.Unlock()
	ua.dialogs[d.CallID] = d
}

// DialogOf gives the dialog of a Call-ID; nil when there is none.
func (ua *UA) DialogOf(callID string) *Dialog {
	ua.mu.Lock()
	defer ua.mu.Unlock()
	return ua.dialogs[callID]
}

// Do sends a request in the dialog and waits for its final response.
func (d *Dialog) Do(ctx context.Context, method string, extra ...string) (*Message, error) {
	d.cseq++
	t, err := d.ua.Start(d.path, d.ua.Branch(), d.lines(method, d.cseq, extra...)...)
	if err != nil {
		return nil, err
	}
	defer t.End()
	m, err := t.Final(ctx)
	if err == nil && method == "INVITE" && m.Status < 300 {
		err = d.send("ACK", d.cseq, d.ua.Branch())
	}
	return m, err
}

// Bye ends the dialog.
func (d *Dialog) Bye(ctx context.Context) (*Message, error) { return d.Do(ctx, "BYE") }

// send sends without waiting: ACK.
func (d *Dialog) send(method string, cseq int, branch string) error {
	return d.ua.Send(d.path, d.ua.build(d.path, branch, d.lines(method, cseq)))
}

func (d *Dialog) lines(method string, cseq int, extra ...string) []string {
	l := []string{
		method + " " + d.Target + " SIP/2.0",
		"Max-Forwards: 70",
		"From: " + d.Local,
		"To: " + d.Remote,
		"Call-ID: " + d.CallID,
		fmt.Sprintf("CSeq: %d %s", cseq, method),
	}
	for _, r := range d.Routes {
		l = append(l, "Route: "+r)
	}
	if method == "INVITE" {
		l = append(l, d.ua.ContactLine(d.path))
	}
	return append(l, extra...)
}

// SetPath changes the way the dialog's requests go.
func (d *Dialog) SetPath(p *Path) { d.path = p }

// RouteAddr gives the address of the first route, where a user agent sends its in-dialog requests.
func (d *Dialog) RouteAddr() (addr netip.AddrPort, transport string) {
	if len(d.Routes) == 0 {
		return addr, ""
	}
	na, _, err := sip.NextNameAddr([]byte(d.Routes[0]))
	if err != nil {
		return addr, ""
	}
	u, err := sip.ParseURI(na.URI)
	if err != nil {
		return addr, ""
	}
	host, ok := sip.ParseHost(u.Host)
	port, _ := sip.ParsePort(u.Port)
	if !ok {
		return addr, ""
	}
	transport = "UDP"
	if v, ok := u.Param("transport"); ok {
		transport = strings.ToUpper(string(v))
	}
	if u.Secure() && transport == "UDP" {
		transport = "TLS"
	}
	return netip.AddrPortFrom(host, port), transport
}
