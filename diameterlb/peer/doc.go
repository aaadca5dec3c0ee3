// Package peer is one hop of Diameter: what may be sent to, and is awaited from, the node behind a connection.
//
// It holds the machine of RFC 6733 5.6 as a table (Next) and the transport it runs over (Conn, Dialer). One event: a
// connection goes up, a message or the end of a stream comes in, or a time is over; Next names the state that follows
// and what is to be done. It starts no goroutine and reads no clock.
package peer
