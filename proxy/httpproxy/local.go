package httpproxy

import (
	"math/rand/v2"
	"strconv"
	"time"
)

// Answer is a response that we make ourselves.
type Answer struct {
	Code  int
	Close bool // the connection closes behind it
	Head  bool // to a HEAD: length without body
	Keep  bool // HTTP/1.0 client that keeps the connection
	Now   time.Time
}

// reasons are the phrases of what Status gives (RFC 9110 15).
var reasons = map[int]string{
	200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 408: "Request Timeout",
	413: "Content Too Large", 414: "URI Too Long", 417: "Expectation Failed", 421: "Misdirected Request",
	431: "Request Header Fields Too Large", 500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway",
	503: "Service Unavailable", 504: "Gateway Timeout", 505: "HTTP Version Not Supported", 508: "Loop Detected",
}

// Allowed are the methods named with 405 and to OPTIONS of the server as such.
const Allowed = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"

// Append writes head and body. A 503 names a time between 5 and 15 seconds, at random, so that clients do not come back
// together (section 12).
func (a Answer) Append(dst []byte) []byte {
	dst = append(dst, "HTTP/1.1 "...)
	dst = strconv.AppendInt(dst, int64(a.Code), 10)
	dst = append(dst, ' ')
	dst = append(dst, reasons[a.Code]...)
	dst = a.Now.UTC().AppendFormat(append(dst, "\r\nDate: "...), "Mon, 02 Jan 2006 15:04:05 GMT")
	switch a.Code {
	case 200, 405:
		dst = append(dst, "\r\nAllow: "+Allowed...)
	case 503:
		dst = append(dst, "\r\nRetry-After: "...)
		dst = strconv.AppendInt(dst, 5+rand.Int64N(11), 10)
	}
	if a.Close {
		dst = append(dst, "\r\nConnection: close"...)
	} else if a.Keep {
		dst = append(dst, "\r\nConnection: keep-alive"...)
	}
	body := ""
	if a.Code != 200 {
		body = reasons[a.Code] + "\n"
		dst = append(dst, "\r\nContent-Type: text/plain"...)
	}
	dst = append(dst, "\r\nContent-Length: "...)
	dst = strconv.AppendInt(dst, int64(len(body)), 10)
	dst = append(dst, "\r\n\r\n"...)
	if a.Head {
		return dst
	}
	return append(dst, body...)
}
