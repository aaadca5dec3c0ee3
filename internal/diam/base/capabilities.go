package base

import (
	"net/netip"
	"slices"
	"strconv"

	"github.com/wyegate/wyegate/internal/diam"
)

// Capabilities is what a peer shows of itself in CER or CEA. Its strings are copies: they outlive the message.
type Capabilities struct {
	Host, Realm  string
	Product      string
	Addrs        []netip.Addr // well-formed ones
	BadAddrs     int          // Host-IP-Address AVPs that could not be read: ignored (diameter.md 2.3)
	Vendor       uint32
	StateID      uint32
	HasState     bool
	Apps         []uint32 // of Auth-, Acct- and Vendor-Specific-Application-Id, each once
	Result       uint32   // CEA only
	ErrorMessage string   // CEA only

	hosts, realms int
	repeated      diam.AVP // the second Origin-Host or Origin-Realm
	security      []uint32 // Inband-Security-Id
	vendorSeen    bool
	productSeen   bool
}

// maxApps bounds what one peer may offer; further ones are not kept.
const maxApps = 256

// ReadCapabilities reads CER or CEA, a whole message. A malformed AVP ends the reading: what stood before it counts, and
// err is diam.ErrAVPLength.
func ReadCapabilities(msg []byte) (c Capabilities, err error) {
	w := diam.Walk(msg[diam.HeaderLen:])
	for {
		a, ok := w.Next()
		if !ok {
			return c, w.Err()
		}
		if a.Flags&diam.AVPVendor == 0 {
			c.take(a)
		}
	}
}

func (c *Capabilities) take(a diam.AVP) {
	switch a.Code {
	case diam.AVPOriginHost:
		c.first(&c.hosts, &c.Host, a)
	case diam.AVPOriginRealm:
		c.first(&c.realms, &c.Realm, a)
	case diam.AVPHostIPAddress:
		if addr, ok := a.Addr(); ok {
			c.Addrs = append(c.Addrs, addr)
		} else {
			c.BadAddrs++
		}
	case diam.AVPVendorID:
		c.Vendor, c.vendorSeen = word(a), true
	case diam.AVPProductName:
		c.Product, c.productSeen = string(a.Data), true
	case diam.AVPOriginStateID:
		c.StateID, c.HasState = a.Uint32()
	case diam.AVPAuthApplicationID, diam.AVPAcctApplicationID:
		c.app(a)
	case diam.AVPVendorSpecificAppID:
		c.vendorApp(a)
	case diam.AVPInbandSecurityID:
		c.security = append(c.security, word(a))
	case diam.AVPResultCode:
		c.Result = word(a)
	case diam.AVPErrorMessage:
		c.ErrorMessage = string(a.Data)
	}
}

func (c *Capabilities) first(n *int, to *string, a diam.AVP) {
	if *n++; *n == 1 {
		*to = string(a.Data)
	} else if c.repeated.Raw == nil {
		c.repeated = a
	}
}

// vendorApp takes the applications of a Vendor-Specific-Application-Id; its Vendor-Id decides nothing (RFC 6733 6.11).
func (c *Capabilities) vendorApp(a diam.AVP) {
	for w := a.Group(); ; {
		in, ok := w.Next()
		if !ok {
			return
		}
		if in.Is(diam.AVPAuthApplicationID) || in.Is(diam.AVPAcctApplicationID) {
			c.app(in)
		}
	}
}

func (c *Capabilities) app(a diam.AVP) {
	if id, ok := a.Uint32(); ok && len(c.Apps) < maxApps && !slices.Contains(c.Apps, id) {
		c.Apps = append(c.Apps, id)
	}
}

func word(a diam.AVP) uint32 {
	v, _ := a.Uint32()
	return v
}

// Check is what a CER is refused for by itself (diameter.md 2.3): 5009 for two origins, 5005 for what is missing, 5017
// where only in-band security is offered, 5010 without an application in common with ours. The zero Refusal: nothing.
func (c *Capabilities) Check(ours []uint32) Refusal {
	switch {
	case c.repeated.Raw != nil:
		return Refusal{
			Result: diam.ResultAVPOccursTooManyTimes, Text: "more than one origin",
			FailedCode: c.repeated.Code, FailedData: slices.Clone(c.repeated.Data),
		}
	case c.hosts == 0 || c.Host == "":
		return missing(diam.AVPOriginHost, "Origin-Host", 1)
	case c.realms == 0 || c.Realm == "":
		return missing(diam.AVPOriginRealm, "Origin-Realm", 1)
	case len(c.Addrs) == 0 && c.BadAddrs == 0:
		return missing(diam.AVPHostIPAddress, "Host-IP-Address", 6)
	case !c.vendorSeen:
		return missing(diam.AVPVendorID, "Vendor-Id", 4)
	case !c.productSeen:
		return missing(diam.AVPProductName, "Product-Name", 1)
	case len(c.security) > 0 && !slices.Contains(c.security, 0):
		return Refusal{Result: diam.ResultNoCommonSecurity, Text: "no in-band security here"}
	case len(diam.CommonApps(ours, c.Apps)) == 0:
		return Refusal{Result: diam.ResultNoCommonApplication, Text: "no application in common"}
	}
	return Refusal{}
}

// missing is 5005 with an example of what is missing, its value zeroes of the least length (RFC 6733 7.5).
func missing(code uint32, name string, least int) Refusal {
	return Refusal{
		Result: diam.ResultMissingAVP, Text: name + " is missing", FailedCode: code, FailedData: make([]byte, least),
	}
}

// String is the refusal in a log line.
func (r Refusal) String() string {
	if r.Text == "" {
		return strconv.Itoa(int(r.Result))
	}
	return strconv.Itoa(int(r.Result)) + " " + r.Text
}
