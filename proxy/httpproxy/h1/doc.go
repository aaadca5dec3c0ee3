// Package h1 forwards HTTP/1.1: the front that listeners hand connections to, and its way to the servers.
//
// One request: the goroutine of the connection waits without a buffer, takes an exchange from the free list when octets
// come, and parses the head (internal/http1). httpproxy admits the request and chooses the server. A pooled connection
// to it is checked for leftovers, and head and body go out in one write; the response head is read, cut and extended in
// the exchange's own memory, and goes to the client in one write with as much of the body as has come. What is long is
// streamed, spliced in the kernel where both sides are sockets. A body that has not come whole is sent by a second
// goroutine while the first reads the response. Then the exchange goes back to the free list.
//
// Time: nobody sets a deadline per message. A connection writes down when it gives up; Front.Run looks every tenth of a
// second, wakes what is late by a deadline in the past, asks the kernel whether clients of long requests are still there,
// and closes pooled connections that were idle too long.
//
// Goroutines: one per client connection, in Serve; one more while a body is sent or a tunnel is open, waited for there.
// Run has the one that watches. There is no lock per message: free lists and pools are arrays of atomic words; the lock
// of a registry shard is held when a connection comes, goes or is looked at.
//
// Requirements: HF-7, HB-1, HB-5 in response.go and relay.go; HB-2 in expect.go; HB-3 in request.go; HB-4 in tunnel.go;
// HB-7 in upload.go and relay.go; HB-8 in conn.go and watch.go; HB-9 in upload.go.
package h1
