// Package h2 speaks HTTP/2: the front that connections with ALPN h2 are handed to, and Lane, which speaks it to servers.
// What a request means is decided in one place, the forwarder of HTTP/1.1 (h1): rules, balancer, stickiness, limits,
// access log and retries know no version. This package only changes the wire.
//
// One request: the gate reads the frames of the connection before the HTTP/2 server does. It decodes each header block
// once, refuses what H2-1 refuses with a stream error, counts what H2-2 bounds, and writes the head down as a head of
// HTTP/1.1, in the order and with the octets that came. The server gets a head of one number in its place and keeps what
// is left to do: streams, windows, settings, pings, GOAWAY. Its handler finds the head by that number and hands it, with
// the body, to the forwarder as a connection of one request (Stream). What the forwarder answers is read back from its
// octets and leaves as HEADERS, DATA and trailers, flushed after every write (H2-3).
//
// An answer that does not end as it must is a reset stream. A client that resets a stream ends the forwarder's context,
// and with it the request at the server.
//
// Goroutines: two of the HTTP/2 server for each connection, one for each stream in service, and one more that reads the
// body of a request that has one. Serve waits for them. The table of open streams has a lock for one look-up; the two
// writers of a connection, the server and the gate, take turns and hold no lock while they write.
//
// Requirements: H2-1 in fields.go and block.go; H2-2 in gate.go and flood.go; H2-3 in answer.go.
package h2
