package base

import (
	"net/netip"

	godiam "github.com/fiorix/go-diameter/v4/diam"
	"github.com/fiorix/go-diameter/v4/diam/datatype"
	"github.com/fiorix/go-diameter/v4/diam/dict"

	"github.com/wyegate/wyegate/internal/diam"
)

// Node is what we show of ourselves in a capabilities exchange (RFC 6733 5.3).
type Node struct {
	Host     string // Origin-Host
	Realm    string // Origin-Realm
	Product  string
	Vendor   uint32
	Firmware uint32 // 0: not sent
	StateID  uint32 // Origin-State-Id; 0: not sent
	Apps     []uint32
}

// IDs are the two identifiers of a message.
type IDs struct{ HopByHop, EndToEnd uint32 }

// IDsOf are those of a received message.
func IDsOf(h diam.Header) IDs { return IDs{h.HopByHop, h.EndToEnd} }

// message is one under construction. go-diameter draws an identifier by itself where 0 is asked for, so both are set
// after it (diameter.md 0.1 rule 3).
type message struct{ *godiam.Message }

func newMessage(command, app uint32, f diam.Flags, id IDs) message {
	m := message{godiam.NewMessage(command, uint8(f), app, 1, 1, dict.Default)}
	m.Header.HopByHopID, m.Header.EndToEndID = id.HopByHop, id.EndToEnd
	return m
}

// add adds an AVP of the base protocol by its code. mandatory sets M; RFC 6733 4.5 forbids it for some.
func (m message) add(code uint32, mandatory bool, data datatype.Type) {
	m.AddAVP(avp(code, mandatory, data))
}

func avp(code uint32, mandatory bool, data datatype.Type) *godiam.AVP {
	var f uint8
	if mandatory {
		f = uint8(diam.AVPMandatory)
	}
	return godiam.NewAVP(code, f, 0, data)
}

// bytes serialises the message. All its AVPs are of types that serialise, so that an error means a message over 16 MiB,
// which none of ours can be: it then gives nothing.
func (m message) bytes() []byte {
	b, err := m.Serialize()
	if err != nil {
		return nil
	}
	return b
}

func (m message) origin(n *Node) {
	m.add(diam.AVPOriginHost, true, datatype.DiameterIdentity(n.Host))
	m.add(diam.AVPOriginRealm, true, datatype.DiameterIdentity(n.Realm))
}

func (m message) state(n *Node) {
	if n.StateID != 0 {
		m.add(diam.AVPOriginStateID, true, datatype.Unsigned32(n.StateID))
	}
}

func (m message) result(code uint32) {
	m.add(diam.AVPResultCode, true, datatype.Unsigned32(code))
}

// capabilities are the AVPs that CER and CEA share, after the origin. Nothing carries M that a peer may refuse.
func (m message) capabilities(n *Node, local []netip.Addr) {
	for _, a := range local {
		m.add(diam.AVPHostIPAddress, true, datatype.Address(a.Unmap().AsSlice()))
	}
	m.add(diam.AVPVendorID, true, datatype.Unsigned32(n.Vendor))
	m.add(diam.AVPProductName, false, datatype.UTF8String(n.Product))
	m.state(n)
	vendors := false
	for _, app := range n.Apps {
		if app == appAccounting {
			m.add(diam.AVPAcctApplicationID, true, datatype.Unsigned32(app))
			continue
		}
		m.add(diam.AVPAuthApplicationID, true, datatype.Unsigned32(app))
		vendors = vendors || diam.AppVendor(app) != 0
	}
	if vendors {
		m.add(diam.AVPSupportedVendorID, true, datatype.Unsigned32(diam.Vendor3GPP))
	}
	for _, app := range n.Apps {
		if v := diam.AppVendor(app); v != 0 {
			m.add(diam.AVPVendorSpecificAppID, true, &godiam.GroupedAVP{AVP: []*godiam.AVP{
				avp(diam.AVPVendorID, true, datatype.Unsigned32(v)),
				avp(diam.AVPAuthApplicationID, true, datatype.Unsigned32(app)),
			}})
		}
	}
	if n.Firmware != 0 {
		m.add(diam.AVPFirmwareRevision, false, datatype.Unsigned32(n.Firmware))
	}
}

// appAccounting is the base accounting application, the only one we know that goes into Acct-Application-Id.
const appAccounting = 3
