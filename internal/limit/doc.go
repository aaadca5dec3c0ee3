// Package limit says no early: token buckets per source and in total for messages, caps for connections (sip-http.md
// SS-5, section 19).
//
// The way of a message: the reader of a socket takes one reading of the clock for its batch and asks Rates.Allow for
// each datagram before anything is parsed. An exempt source passes; any other needs a token of its own bucket and one of
// the common bucket. The way of a connection: the acceptor asks Caps.Acquire with the peer's address and calls Release
// when the connection has ended.
//
// Nothing here reads a clock, starts a goroutine or allocates per message. Memory is laid out when a limiter is built
// and does not grow with the number of sources.
package limit
