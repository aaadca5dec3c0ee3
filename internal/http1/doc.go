// Package http1 is the wire layer of HTTP/1.1: received bytes in, offsets, framing and cuts out. It opens nothing, waits
// for nothing and allocates nothing per message.
//
// One request: the reader hands what it has received to Head.ParseRequest, again with more until the head is whole. The
// Head then holds the received bytes and where in them method, target and fields stand; what RFC 9112 does not allow was
// refused with an *Error that names the status. RequestFraming says how the body ends. CutHopByHop marks the lines that
// concern one hop only; the proxies mark others. AppendFields writes what no cut took off, as it was received. A chunked
// body goes through Chunks, which says of each received piece what may go on and what is dropped.
//
// A response takes the same way through ParseResponse and ResponseFraming.
package http1
