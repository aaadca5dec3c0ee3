package sipload

import (
	"bytes"
	"strconv"
)

const (
	idOctets = 16 // slot and generation, eight hexadecimal digits each
	idPrefix = "wl"
	host     = "@caller.example"
)

const sdp = "v=0\r\no=ann 7310 7310 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 40000 RTP/AVP 8 0 101\r\n" +
	"a=rtpmap:8 PCMA/8000\r\na=rtpmap:0 PCMU/8000\r\na=rtpmap:101 telephone-event/8000\r\na=fmtp:101 0-16\r\na=ptime:20\r\na=sendrecv\r\n"

// fields are what every request of ours carries behind its own.
const fields = "Contact: <sip:ann@"

// writer builds messages of one caller.
type writer struct {
	from string // address of the caller's socket
}

// request writes a request of the unit id. target is the Request-URI; toTag and routes are nil outside of a dialog.
func (w *writer) request(b []byte, method string, cseq int, id, target, toTag []byte, routes [][]byte, body string) []byte {
	b = append(b, method...)
	b = append(b, ' ')
	b = append(b, target...)
	b = append(b, " SIP/2.0\r\nVia: SIP/2.0/UDP "...)
	b = append(b, w.from...)
	b = append(b, ";rport;branch=z9hG4bK"...)
	b = append(append(b, method[0]), id...)
	b = append(b, "\r\nMax-Forwards: 70\r\n"...)
	for i := len(routes) - 1; i >= 0; i-- { // the caller's route set is Record-Route backwards
		b = append(b, "Route: "...)
		b = append(b, routes[i]...)
		b = append(b, "\r\n"...)
	}
	b = append(b, "From: \"Ann\" <sip:ann@caller.example>;tag="...)
	b = append(b, id...)
	b = append(b, "\r\nTo: <sip:+4670123456@proxy.example>"...)
	if toTag != nil {
		b = append(append(b, ";tag="...), toTag...)
	}
	b = append(b, "\r\nCall-ID: "+idPrefix...)
	b = append(b, id...)
	b = append(b, host+"\r\nCSeq: "...)
	b = strconv.AppendInt(b, int64(cseq), 10)
	b = append(append(b, ' '), method...)
	b = append(b, "\r\n"+fields...)
	b = append(b, w.from...)
	b = append(b, ">\r\nUser-Agent: wyegate-load\r\nAllow: INVITE, ACK, CANCEL, OPTIONS, BYE, UPDATE, INFO, MESSAGE, NOTIFY\r\nSupported: timer, replaces\r\n"...)
	if body != "" {
		b = append(b, "Content-Type: application/sdp\r\n"...)
	}
	b = append(b, "Content-Length: "...)
	b = strconv.AppendInt(b, int64(len(body)), 10)
	b = append(b, "\r\n\r\n"...)
	return append(b, body...)
}

// answer writes a response to request m of the server at addr. What a UAS copies is copied line by line.
func answer(b, m []byte, status, addr string) []byte {
	b = append(append(append(b, "SIP/2.0 "...), status...), "\r\n"...)
	eachLine(m, func(name, line []byte) {
		switch string(name) {
		case "Via", "From", "Call-ID", "CSeq", "Record-Route":
			b = append(append(b, line...), "\r\n"...)
		case "To":
			b = append(b, line...)
			if !bytes.Contains(line, []byte(";tag=")) {
				b = append(b, ";tag=as"...)
			}
			b = append(b, "\r\n"...)
		}
	})
	b = append(append(append(b, "Contact: <sip:"...), addr...), ">\r\n"...)
	return append(b, "Server: wyegate-load\r\nAllow: INVITE, ACK, CANCEL, OPTIONS, BYE\r\nContent-Length: 0\r\n\r\n"...)
}

// eachLine walks the header lines of a message whose fields are not folded and have their long names, as ours and those
// of the proxies measured are.
func eachLine(m []byte, f func(name, line []byte)) {
	for _, rest, _ := bytes.Cut(m, []byte("\r\n")); len(rest) > 0; {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte("\r\n"))
		if len(line) == 0 {
			return
		}
		name, _, _ := bytes.Cut(line, []byte(":"))
		f(name, line)
	}
}

// value is a header line without its name.
func value(line []byte) []byte {
	_, v, _ := bytes.Cut(line, []byte(":"))
	return bytes.TrimSpace(v)
}

// unit finds slot and generation in the Call-ID of a message; false: it is none of ours.
func unit(m []byte) (id []byte, ok bool) {
	i := bytes.Index(m, []byte("\r\nCall-ID: "+idPrefix))
	if i < 0 {
		return nil, false
	}
	id = m[i+len("\r\nCall-ID: "+idPrefix):]
	if len(id) < idOctets+len(host) || string(id[idOctets:idOctets+len(host)]) != host {
		return nil, false
	}
	return id[:idOctets], true
}

const digits = "0123456789abcdef"

// appendID writes slot and generation.
func appendID(b []byte, slot int, generation uint32) []byte {
	for shift := 28; shift >= 0; shift -= 4 {
		b = append(b, digits[uint32(slot)>>shift&15])
	}
	for shift := 28; shift >= 0; shift -= 4 {
		b = append(b, digits[generation>>shift&15])
	}
	return b
}

// readID is the way back.
func readID(id []byte) (slot int, generation uint32, ok bool) {
	var v [2]uint32
	for i, c := range id {
		d := bytes.IndexByte([]byte(digits), c)
		if d < 0 {
			return 0, 0, false
		}
		v[i/8] = v[i/8]<<4 | uint32(d)
	}
	return int(v[0]), v[1], true
}
