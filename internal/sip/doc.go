// Package sip is the SIP wire layer: it indexes a received message as offsets over its own bytes, reads the values a
// proxy needs, says what a sender is owed when a message is wrong, and writes edits as splices. Everything that no edit
// names leaves as it came (sip-http.md section 18). It opens no socket, reads no clock and knows no pool.
//
// The way of one message: a Framer cuts it out of a stream, or a datagram holds it. FindCallID names the worker for it
// before anything deep. Msg.Parse (Msg.ParseDatagram) lays the index and refuses a head that cannot be read; Validate
// reads the values every message has, into Msg.Values, and says which status is owed. Other values are read where they
// are needed, by the one parser for their kind: ParseURI, NextNameAddr for lists and ParseNameAddr for single fields,
// NextVia, or the walks Msg.Addrs, Msg.Vias and Msg.Tokens. Edits collects what is changed and Edits.Append writes the
// message to send; AppendAnswer writes our own final answer, also to a message that was refused.
//
// A Msg and an Edits belong to one worker, a Framer to the reader of one stream; nothing here is safe for two goroutines
// at once. In steady state nothing allocates, and every slice that is handed out is a piece of the received bytes.
package sip
