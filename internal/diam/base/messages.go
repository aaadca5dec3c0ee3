package base

import (
	"net/netip"

	godiam "github.com/fiorix/go-diameter/v4/diam"
	"github.com/fiorix/go-diameter/v4/diam/datatype"

	"github.com/wyegate/wyegate/internal/diam"
)

// CER is our Capabilities-Exchange-Request from the addresses in local (RFC 6733 5.3.1).
func (n *Node) CER(id IDs, local []netip.Addr) []byte {
	m := newMessage(diam.CommandCapabilitiesExchange, diam.AppBase, diam.FlagRequest, id)
	m.origin(n)
	m.capabilities(n, local)
	return m.bytes()
}

// CEA answers a CER: with our capabilities where result is 2001, else with the reason alone (RFC 6733 5.3.2). text goes
// into Error-Message where it is not empty; failed into Failed-AVP where its code is not 0.
func (n *Node) CEA(id IDs, local []netip.Addr, r Refusal) []byte {
	var f diam.Flags
	if r.Result/1000 == 3 {
		f = diam.FlagError
	}
	m := newMessage(diam.CommandCapabilitiesExchange, diam.AppBase, f, id)
	code := r.Result
	if code == 0 {
		code = diam.ResultSuccess
	}
	m.result(code)
	m.origin(n)
	if f == 0 {
		m.capabilities(n, local)
	}
	if r.Text != "" {
		m.add(diam.AVPErrorMessage, false, datatype.UTF8String(r.Text))
	}
	if r.FailedCode != 0 {
		m.add(diam.AVPFailedAVP, true, &godiam.GroupedAVP{AVP: []*godiam.AVP{
			avp(r.FailedCode, true, datatype.OctetString(r.FailedData)),
		}})
	}
	return m.bytes()
}

// Refusal is why a CER is not accepted. The zero value accepts it.
type Refusal struct {
	Result     uint32
	Text       string
	FailedCode uint32 // of the AVP that is missing or stands too often; 0: none
	FailedData []byte
}

// DWR is our Device-Watchdog-Request (RFC 6733 5.5.1).
func (n *Node) DWR(id IDs) []byte {
	m := newMessage(diam.CommandDeviceWatchdog, diam.AppBase, diam.FlagRequest, id)
	m.origin(n)
	m.state(n)
	return m.bytes()
}

// DWA answers a DWR.
func (n *Node) DWA(id IDs) []byte {
	m := newMessage(diam.CommandDeviceWatchdog, diam.AppBase, 0, id)
	m.result(diam.ResultSuccess)
	m.origin(n)
	m.state(n)
	return m.bytes()
}

// DPR says that we are about to close, and why (RFC 6733 5.4.1).
func (n *Node) DPR(id IDs, cause diam.Cause) []byte {
	m := newMessage(diam.CommandDisconnectPeer, diam.AppBase, diam.FlagRequest, id)
	m.origin(n)
	m.add(diam.AVPDisconnectCause, true, datatype.Enumerated(cause))
	return m.bytes()
}

// DPA answers a DPR with result.
func (n *Node) DPA(id IDs, result uint32) []byte {
	var f diam.Flags
	if result/1000 == 3 {
		f = diam.FlagError
	}
	m := newMessage(diam.CommandDisconnectPeer, diam.AppBase, f, id)
	m.result(result)
	m.origin(n)
	return m.bytes()
}

// Session is what a request of a session says of where it goes.
type Session struct {
	ID        string // Session-Id
	App       uint32
	DestRealm string
	DestHost  string // empty: not known yet
}

func (m message) session(n *Node, s Session) {
	m.add(diam.AVPSessionID, true, datatype.UTF8String(s.ID))
	m.add(diam.AVPAuthApplicationID, true, datatype.Unsigned32(s.App))
	m.origin(n)
	m.add(diam.AVPDestinationRealm, true, datatype.DiameterIdentity(s.DestRealm))
	if s.DestHost != "" {
		m.add(diam.AVPDestinationHost, true, datatype.DiameterIdentity(s.DestHost))
	}
}

// AAR is an AA-Request of our own (TS 29.214 5.6.1), with avps, whole and padded, behind the routing AVPs.
func (n *Node) AAR(id IDs, s Session, avps []byte) ([]byte, error) {
	m := newMessage(diam.CommandAA, s.App, diam.FlagRequest|diam.FlagProxiable, id)
	m.session(n, s)
	m.state(n)
	return withRaw(m.bytes(), avps)
}

// STR ends a session of ours (RFC 6733 8.4.1); cause is its Termination-Cause.
func (n *Node) STR(id IDs, s Session, cause uint32) []byte {
	m := newMessage(diam.CommandSessionTermination, s.App, diam.FlagRequest|diam.FlagProxiable, id)
	m.session(n, s)
	m.add(diam.AVPTerminationCause, true, datatype.Enumerated(cause))
	m.state(n)
	return m.bytes()
}

// withRaw puts avps behind a message. Error: diam.ErrTooLong.
func withRaw(msg, avps []byte) ([]byte, error) {
	h, err := diam.ParseHeader(msg, len(msg))
	if err != nil {
		return nil, err
	}
	b := diam.Build(nil, h)
	b.Raw(msg[diam.HeaderLen:])
	b.Raw(avps)
	return b.Bytes()
}
