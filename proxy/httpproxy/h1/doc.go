// Package h1 forwards HTTP/1.1: the front that listeners hand connections to, and its way to the servers.
//
// One request, on Linux and without TLS: an event loop watches the socket (loop_linux.go). When octets come it takes an
// exchange from its list, reads and parses the head (internal/http1). httpproxy admits the request and chooses the server.
// Where the request has come whole and a connection to the server is idle, the loop writes head and body over it in one
// write, and when the response comes it is read, cut and extended in the loop's own memory, and goes to the client in one
// write; what has not come of a body of known length follows as it comes. That is four system calls, and a share of one
// that waits.
//
// Whatever is not plain goes to the goroutine of the connection, which has waited since the connection came: a connection
// to a server must be opened, a body is on the way, a client reads slowly, an upgrade, a 1xx, a response of unknown length,
// any fault. The loop hands it over as it stands (stage, fast_linux.go) and never waits itself; the goroutine gives the
// connection back behind the response. TLS connections are served by their goroutines alone, by the same code: it parses,
// decides, sends head and body in one write, relays the response, streams what is long, spliced in the kernel where both
// sides are sockets. A body that has not come whole is sent by a second goroutine while the first reads the response.
//
// Time: nobody sets a deadline per message. A connection writes down when it gives up; Front.Run looks every tenth of a
// second, wakes what is late, looks whether clients of long requests are still there, and closes pooled connections that
// were idle too long. A loop reads the clock once for each batch of events.
//
// Goroutines: one per client connection, in Serve, asleep while a loop has the connection; one more while a body is sent
// or a tunnel is open, waited for there. One per loop, waited for in Run. Run has the one that watches. Who has a
// connection owns all of it, and gives it away by one atomic word and a channel. There is no lock per message: free lists
// and pools are arrays of atomic words; the lock of a registry shard or of a loop's table is held when a connection comes
// or goes.
//
// Requirements: HF-7, HB-1, HB-5 in response.go and relay.go; HB-2 in expect.go; HB-3 in request.go and fast_linux.go; HB-4 in tunnel.go;
// HB-7 in upload.go and relay.go; HB-8 in conn.go and watch.go; HB-9 in upload.go.
package h1
