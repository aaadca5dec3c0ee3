package sip

// Error says what is wrong with a message and which status its sender is owed (400, 414, 416, 420, 483, 505, 513).
// The values of this package are made once: refusing a message costs no allocation, so a flood of bad ones is cheap.
type Error struct {
	Status int    // 0: nothing is owed, the message is dropped and counted
	Reason string // reason phrase of the answer
	Text   string // for explain and the log
	Close  bool   // the stream it came on cannot be framed any further

	drop *Error // the same fault in a response
}

func (e *Error) Error() string { return "sip: " + e.Text }

// bad is a fault of a message that its sender is told about; the stream goes on.
func bad(status int, text string) *Error { return fault(status, text, false) }

// unframed is a fault after which nobody knows where the next message begins.
func unframed(status int, text string) *Error { return fault(status, text, true) }

func fault(status int, text string, closes bool) *Error {
	return &Error{
		Status: status, Reason: Reason(status), Text: text, Close: closes,
		drop: &Error{Text: "response: " + text, Close: closes},
	}
}

// owed turns a fault into what the sender of this message is owed: a response is never answered.
func (m *Msg) owed(e *Error) *Error {
	if e != nil && !m.Request && m.Version.Len() > 0 && e.drop != nil {
		return e.drop
	}
	return e
}

// What Parse and the Framer find. The parsers of single values share errValue and its like: the validator puts the name
// of the header field to it.
var (
	errNotSIP      = unframed(400, "start line is not SIP")
	errStartLine   = bad(400, "malformed start line")
	errStartBlank  = bad(400, "white space behind the start line")
	errMethod      = bad(400, "method is not a token")
	errStatusLine  = bad(400, "malformed status line")
	errBareLF      = unframed(400, "line feed without carriage return in the head")
	errBareCR      = unframed(400, "carriage return without line feed in the head")
	errNUL         = bad(400, "NUL in the head")
	errNoEnd       = bad(400, "head without an empty line at its end")
	errFieldName   = bad(400, "header line without a field name")
	errLines       = unframed(513, "too many lines in the head")
	errHeadSize    = unframed(513, "head is too large")
	errBodySize    = unframed(513, "body is too large")
	errNoLength    = unframed(400, "no Content-Length on a stream")
	errTwoLengths  = unframed(400, "two Content-Length fields on a stream")
	errLengthValue = unframed(400, "Content-Length is not a number")
	errLengthFits  = bad(400, "Content-Length does not fit the WebSocket message")
	errShortBody   = bad(400, "body is shorter than Content-Length")
)

// What the readers of single values find.
var (
	errURI       = bad(400, "malformed URI")
	errNameAddr  = bad(400, "malformed address")
	errVia       = bad(400, "malformed Via")
	errCSeq      = bad(400, "malformed CSeq")
	errHops      = bad(400, "Max-Forwards is not a number from 0 to 255")
	errRetry     = bad(400, "malformed Retry-After")
	errLengthNum = bad(400, "malformed Content-Length")
)

// Reason is the reason phrase of RFC 3261 section 21 (430: RFC 5626 section 11.6) for the statuses that this program
// writes itself.
func Reason(status int) string {
	switch status {
	case 100:
		return "Trying"
	case 200:
		return "OK"
	case 400:
		return "Bad Request"
	case 403:
		return "Forbidden"
	case 404:
		return "Not Found"
	case 408:
		return "Request Timeout"
	case 414:
		return "Request-URI Too Long"
	case 416:
		return "Unsupported URI Scheme"
	case 420:
		return "Bad Extension"
	case 430:
		return "Flow Failed"
	case 480:
		return "Temporarily Unavailable"
	case 481:
		return "Call/Transaction Does Not Exist"
	case 482:
		return "Loop Detected"
	case 483:
		return "Too Many Hops"
	case 488:
		return "Not Acceptable Here"
	case 500:
		return "Server Internal Error"
	case 503:
		return "Service Unavailable"
	case 505:
		return "Version Not Supported"
	case 513:
		return "Message Too Large"
	}
	return "Unknown"
}
