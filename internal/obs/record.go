package obs

import (
	"net/netip"
	"time"
)

// Proto is the protocol of a record.
type Proto uint8

// The protocols of an access log line.
const (
	SIP Proto = iota
	HTTP
)

// TextMax is how many octets of a message one record can hold.
const TextMax = 640

// Text is a piece of a record's own text.
type Text struct{ start, end uint16 }

// Record is one transaction for the access log: fixed in size, filled in place. Strings in it come from the
// configuration, octets of the message are copied into its own text with Put.
type Record struct {
	Start      time.Time
	Generation uint64
	Listener   string
	Proto      Proto
	App        string // "service/application"
	Client     netip.AddrPort
	Server     string
	Rule       string
	KeySource  string // rule, default, token, stale_token, round_robin; empty: none
	Code       int
	Disp       [4]byte
	Tried      [8]string
	NumTried   int
	Rules      time.Duration // time in rules
	Connect    time.Duration
	First      time.Duration // to the first answer
	Final      time.Duration
	BytesIn    int64 // HTTP
	BytesOut   int64 // HTTP

	Method Text
	URI    Text
	CallID Text // SIP
	Host   Text // HTTP
	Key    Text
	KeyLen int // of the whole key, when Key was cut at 256 octets

	used uint16
	text [TextMax]byte
}

// Put copies b into the record's text, cut at max octets and at what is left.
func (r *Record) Put(b []byte, max int) Text {
	if len(b) > max {
		b = b[:max]
	}
	n := copy(r.text[r.used:], b)
	t := Text{r.used, r.used + uint16(n)}
	r.used += uint16(n)
	return t
}

// Bytes gives the octets of a text.
func (r *Record) Bytes(t Text) []byte { return r.text[t.start:t.end] }

// Reset empties the record for the next transaction.
func (r *Record) Reset() { *r = Record{} }
