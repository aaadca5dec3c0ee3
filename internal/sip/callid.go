package sip

import "bytes"

// FindCallID finds the value of Call-ID in a message that was not indexed yet, folded or compact, without a full
// parse: the readers of sockets name the worker by it. It is the value that Msg.Parse finds first. Nil when there is
// none.
func FindCallID(raw []byte) []byte {
	at := 0
	for at < len(raw) && (raw[at] == '\r' || raw[at] == '\n') {
		at++ // empty lines before the start line
	}
	for {
		n := bytes.IndexByte(raw[at:], '\n')
		if n < 0 {
			return nil
		}
		if at += n + 1; at == len(raw) {
			return nil
		}
		switch raw[at] {
		case '\r':
			if at+1 < len(raw) && raw[at+1] == '\n' {
				return nil
			}
		case 'c', 'C', 'i', 'I':
			if raw[at-2] != '\r' {
				continue // behind a lone line feed: inside the value above for the parser
			}
			var f Field
			if end := run(raw, at, isToken); HeaderByName(raw[at:end]) != CallID {
				continue
			}
			if scanField(raw, at, &f); f.ID == CallID {
				return f.Value.Of(raw)
			}
		}
	}
}
