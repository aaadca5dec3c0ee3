// Package sip is the SIP wire layer: it indexes a received message as offsets over its own bytes, reads the values a
// proxy needs, says what a sender is owed when a message is wrong, and writes edits as splices. Everything that no edit
// names leaves as it came (sip-http.md section 18). It opens no socket, reads no clock and knows no pool.
//
// The way of one message: a Framer (stream) or the datagram itself gives the bytes of one message; Msg.Parse lays the
// index; Validate says which status is owed; the parsers of URI, NameAddr, Via and CSeq read single values lazily; an
// Edits list collects splices; Edits.Append writes the message to send.
package sip
