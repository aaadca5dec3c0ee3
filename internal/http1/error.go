package http1

import "errors"

// Error says what is wrong with a message. Status is what the sender of a request is owed; for a response the proxy
// answers 502 whatever it says.
type Error struct {
	Status int    // 400, 414, 431, 501 or 505
	Reason string // for the log
}

// Error is the reason with the package's name.
func (e *Error) Error() string { return "http1: " + e.Reason }

// What ParseRequest, ParseResponse, the framing decisions and Chunks refuse. The values are compared by identity.
var (
	ErrEmptyLines    = &Error{400, "more than two empty lines before the request"}
	ErrBareLF        = &Error{400, "line does not end in CRLF"}
	ErrRequestLine   = &Error{400, "malformed request line"}
	ErrMethod        = &Error{400, "method is not a token"}
	ErrTarget        = &Error{400, "octet not allowed in the request target"}
	ErrTargetLong    = &Error{414, "request target too long"}
	ErrVersion       = &Error{400, "malformed protocol version"}
	ErrOldVersion    = &Error{400, "HTTP/0.9 request"}
	ErrOtherVersion  = &Error{505, "protocol version is not 1.0 or 1.1"}
	ErrFieldStart    = &Error{400, "field line starts with white space"}
	ErrFieldName     = &Error{400, "field name is not a token"}
	ErrFieldValue    = &Error{400, "control character in a field value"}
	ErrHeadLong      = &Error{431, "header block too long"}
	ErrFieldCount    = &Error{431, "too many field lines"}
	ErrStatusLine    = &Error{400, "malformed status line"}
	ErrLengthTwice   = &Error{400, "more than one content-length"}
	ErrLength        = &Error{400, "malformed content-length"}
	ErrBothLengths   = &Error{400, "content-length beside transfer-encoding"}
	ErrCoding        = &Error{400, "malformed transfer-encoding"}
	ErrCodingUnknown = &Error{501, "transfer coding is not chunked"}
	ErrCodingVersion = &Error{400, "transfer-encoding in HTTP/1.0"}
	ErrChunkSize     = &Error{400, "malformed chunk size"}
	ErrChunkExt      = &Error{400, "malformed or long chunk extension"}
	ErrChunkEnd      = &Error{400, "chunk data not followed by CRLF"}
	ErrTrailerLong   = &Error{431, "trailer section too long"}
	ErrHostMissing   = &Error{400, "no host"}
	ErrHostTwice     = &Error{400, "more than one host"}
	ErrHost          = &Error{400, "malformed host"}
	ErrFieldTwice    = &Error{400, "more than one line of a field that has one value"}
)

// AsError gives the *Error in err; nil when there is none.
func AsError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return nil
}
