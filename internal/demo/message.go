package demo

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/textproto"
	"strconv"
	"strings"
)

// message is a SIP message as the phones read it: a start line and fields in their order. It is deliberately not the
// wire layer of the edge: what the edge writes must be read by somebody else.
type message struct {
	start  string
	fields [][2]string
}

var errMessage = errors.New("no SIP message")

// parse reads a message without its body; the demo sends none.
func parse(text string) (message, error) {
	head, _, ok := strings.Cut(text, "\r\n\r\n")
	if !ok {
		return message{}, fmt.Errorf("%w: no empty line", errMessage)
	}
	lines := strings.Split(head, "\r\n")
	m := message{start: lines[0]}
	for _, l := range lines[1:] {
		name, value, ok := strings.Cut(l, ":")
		if !ok {
			return message{}, fmt.Errorf("%w: field %q", errMessage, l)
		}
		m.fields = append(m.fields, [2]string{strings.TrimSpace(name), strings.TrimSpace(value)})
	}
	return m, nil
}

// readMessage takes the next message off a stream (RFC 3261 18.3); CRLF between messages is passed over.
func readMessage(r *bufio.Reader) (message, error) {
	var head strings.Builder
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return message{}, err
		}
		if head.Len() == 0 && strings.TrimSpace(line) == "" {
			continue
		}
		head.WriteString(line)
		if line == "\r\n" {
			break
		}
	}
	m, err := parse(head.String())
	if err != nil {
		return m, err
	}
	n, err := strconv.Atoi(m.get("Content-Length"))
	if err != nil {
		return m, fmt.Errorf("%w: content-length %q on a stream", errMessage, m.get("Content-Length"))
	}
	_, err = io.CopyN(io.Discard, r, int64(n))
	return m, err
}

// get gives the first value of a field, empty without one.
func (m message) get(name string) string {
	for _, f := range m.fields {
		if strings.EqualFold(f[0], name) {
			return f[1]
		}
	}
	return ""
}

// all gives the values of a field that may be a list, in order.
func (m message) all(name string) (values []string) {
	for _, f := range m.fields {
		if strings.EqualFold(f[0], name) {
			values = append(values, splitList(f[1])...)
		}
	}
	return values
}

// splitList cuts a list at its commas, but not inside of <> or quotes.
func splitList(s string) (list []string) {
	quoted, angle, from := false, false, 0
	for i, c := range s {
		switch {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '<':
			angle = true
		case c == '>':
			angle = false
		case c == ',' && !angle:
			list = append(list, strings.TrimSpace(s[from:i]))
			from = i + 1
		}
	}
	return append(list, strings.TrimSpace(s[from:]))
}

// lines gives a field as it came, line for line, ready to be put into an answer.
func (m message) lines(name string) string {
	var b strings.Builder
	for _, f := range m.fields {
		if strings.EqualFold(f[0], name) {
			fmt.Fprintf(&b, "%s: %s\r\n", textproto.CanonicalMIMEHeaderKey(name), f[1])
		}
	}
	return b.String()
}

// status is the code of a response, 0 of a request.
func (m message) status() int {
	rest, ok := strings.CutPrefix(m.start, "SIP/2.0 ")
	if !ok {
		return 0
	}
	code, _, _ := strings.Cut(rest, " ")
	n, err := strconv.Atoi(code)
	if err != nil {
		return 0
	}
	return n
}

// method is the method of a request, and the method that a response is to.
func (m message) method() string {
	if m.status() == 0 {
		method, _, _ := strings.Cut(m.start, " ")
		return method
	}
	_, method, _ := strings.Cut(m.get("CSeq"), " ")
	return strings.TrimSpace(method)
}

// uri is the Request-URI.
func (m message) uri() string {
	parts := strings.Split(m.start, " ")
	if len(parts) != 3 {
		return ""
	}
	return parts[1]
}

// addrSpec takes the URI out of a name-addr.
func addrSpec(value string) string {
	_, rest, ok := strings.Cut(value, "<")
	if !ok {
		uri, _, _ := strings.Cut(value, ";")
		return uri
	}
	uri, _, _ := strings.Cut(rest, ">")
	return uri
}

// userPart is the user of a sip URI.
func userPart(uri string) string {
	_, rest, _ := strings.Cut(uri, ":")
	user, _, ok := strings.Cut(rest, "@")
	if !ok {
		return ""
	}
	return user
}
