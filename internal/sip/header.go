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

// HeaderByName gives the number of a field name in long or compact form, whatever its letter case.
func HeaderByName(name []byte) HeaderID { return HeaderOther }

// String is the long form of the name, as RFC 3261 writes it.
func (id HeaderID) String() string { return "" }
