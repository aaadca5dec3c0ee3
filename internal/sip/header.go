package sip

// HeaderID is the number of a header field name that the program knows, long and compact form alike.
type HeaderID uint8

// The names with a number. The rule engine compares by these, so a name of dcr.md 3.3 with a compact form must be here.
const (
	HeaderOther HeaderID = iota
	Via
	From
	To
	CallID
	CSeq
	Contact
	Route
	RecordRoute
	Path
	MaxForwards
	ContentLength
	ContentType
	ContentEncoding
	Require
	ProxyRequire
	Supported
	Unsupported
	Event
	AllowEvents
	Expires
	SessionExpires
	ReferTo
	ReferredBy
	Replaces
	Join
	TargetDialog
	RetryAfter
	Authorization
	ProxyAuthorization
	Subject
	AcceptContact
	RejectContact
	RequestDisposition
	Identity
	PAssertedIdentity
	PPreferredIdentity
	PServedUser
	ResourcePriority
	Date
	Timestamp

	numHeaders
)

// names holds the long form as its RFC writes it, and the compact form where there is one (dcr.md 3.3).
var names = [numHeaders]struct {
	long    string
	compact byte
}{
	Via:                {"Via", 'v'},
	From:               {"From", 'f'},
	To:                 {"To", 't'},
	CallID:             {"Call-ID", 'i'},
	CSeq:               {"CSeq", 0},
	Contact:            {"Contact", 'm'},
	Route:              {"Route", 0},
	RecordRoute:        {"Record-Route", 0},
	Path:               {"Path", 0},
	MaxForwards:        {"Max-Forwards", 0},
	ContentLength:      {"Content-Length", 'l'},
	ContentType:        {"Content-Type", 'c'},
	ContentEncoding:    {"Content-Encoding", 'e'},
	Require:            {"Require", 0},
	ProxyRequire:       {"Proxy-Require", 0},
	Supported:          {"Supported", 'k'},
	Unsupported:        {"Unsupported", 0},
	Event:              {"Event", 'o'},
	AllowEvents:        {"Allow-Events", 'u'},
	Expires:            {"Expires", 0},
	SessionExpires:     {"Session-Expires", 'x'},
	ReferTo:            {"Refer-To", 'r'},
	ReferredBy:         {"Referred-By", 'b'},
	Replaces:           {"Replaces", 0},
	Join:               {"Join", 0},
	TargetDialog:       {"Target-Dialog", 0},
	RetryAfter:         {"Retry-After", 0},
	Authorization:      {"Authorization", 0},
	ProxyAuthorization: {"Proxy-Authorization", 0},
	Subject:            {"Subject", 's'},
	AcceptContact:      {"Accept-Contact", 'a'},
	RejectContact:      {"Reject-Contact", 'j'},
	RequestDisposition: {"Request-Disposition", 'd'},
	Identity:           {"Identity", 'y'},
	PAssertedIdentity:  {"P-Asserted-Identity", 0},
	PPreferredIdentity: {"P-Preferred-Identity", 0},
	PServedUser:        {"P-Served-User", 0},
	ResourcePriority:   {"Resource-Priority", 0},
	Date:               {"Date", 0},
	Timestamp:          {"Timestamp", 0},
}

// longestName is the length of the longest of them.
const longestName = len("P-Preferred-Identity")

// slotOf maps a name to one of 256 slots so that no two known long names share one (a test proves it): recognising a
// name is one look-up and one comparison.
func slotOf(name []byte) uint8 {
	n := len(name)
	first, mid, last := lower[name[0]], lower[name[n/2]], lower[name[n-1]]
	return uint8(n) + first*2 + mid*31 + last
}

var (
	bySlot    = slots()
	byCompact = compacts()
)

func slots() (t [256]HeaderID) {
	for id := HeaderOther + 1; id < numHeaders; id++ {
		t[slotOf([]byte(names[id].long))] = id
	}
	return t
}

func compacts() (t [256]HeaderID) {
	for id := HeaderOther + 1; id < numHeaders; id++ {
		if c := names[id].compact; c != 0 {
			t[c], t[c-'a'+'A'] = id, id
		}
	}
	return t
}

// HeaderByName gives the number of a field name in long or compact form, whatever its letter case.
func HeaderByName(name []byte) HeaderID {
	switch len(name) {
	case 0:
		return HeaderOther
	case 1:
		return byCompact[name[0]]
	}
	id := bySlot[slotOf(name)]
	if long := names[id].long; string(name) == long || EqualFold(name, long) {
		return id
	}
	return HeaderOther
}

// String is the long form of the name, as its RFC writes it; empty for HeaderOther.
func (id HeaderID) String() string {
	if id >= numHeaders {
		return ""
	}
	return names[id].long
}

// Single says that the field holds one value, so that a comma in it separates nothing: From, To and their like are read
// with ParseNameAddr, lists with NextNameAddr.
func (id HeaderID) Single() bool {
	switch id {
	case From, To, CallID, CSeq, MaxForwards, ContentLength, ContentType, ReferTo, ReferredBy, Event, Expires,
		SessionExpires, RetryAfter, Replaces, Join, TargetDialog, Subject, Date, Timestamp, PServedUser, Identity,
		Authorization, ProxyAuthorization:
		return true
	}
	return false
}
