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

// String is the word in the log.
func (p Proto) String() string { return Protocols[p] }

// TextMax is how many octets of a message one record can hold.
const TextMax = 640

// KeyMax is how many octets of a key are written to the log; a longer one is cut and its length is written beside.
const KeyMax = 256

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
	Code       int    // 0: no answer
	Disp       [4]byte
	Tried      [8]string
	NumTried   int           // may exceed what Tried holds
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
	KeyLen int // of the whole key, when Key was cut at KeyMax octets

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

// SetKey copies the key and notes its length when it is cut.
func (r *Record) SetKey(key []byte) {
	r.Key = r.Put(key, KeyMax)
	if n := int(r.Key.end - r.Key.start); n < len(key) {
		r.KeyLen = len(key)
	}
}

// AddTried notes a server the request was offered to.
func (r *Record) AddTried(server string) {
	if r.NumTried < len(r.Tried) {
		r.Tried[r.NumTried] = server
	}
	r.NumTried++
}

// Bytes gives the octets of a text.
func (r *Record) Bytes(t Text) []byte { return r.text[t.start:t.end] }

// Reset empties the record for the next transaction.
func (r *Record) Reset() { *r = Record{} }
