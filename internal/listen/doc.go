// Package listen owns the sockets that outlive generations, by network and address (architecture.md 4.1, 4.7), and the
// PROXY protocol and the TLS handshake in front of them (sip-http.md sections 13, 14).
//
// The way of a reload: Set.Adopt binds what is new and finds what is there already, or fails and has changed nothing;
// the engine builds on the sockets of the Change; Commit closes what nobody wants any more, Undo what was bound in vain.
// A connection in flight never notices: it belongs to its handler, not to the socket.
//
// The way of a connection: the acceptor takes it from the kernel; a goroutine of its own reads the PROXY header where
// one is due, counts it against the caps, makes the TLS handshake where the Service asks for one, and calls the Handle of the Service that the socket has at that moment, with
// the bare *net.TCPConn, a *Conn around it where addresses were carried, or the *tls.Conn on top of either. When Handle returns the connection is
// closed and its place given back.
//
// Acceptors and connections run inside Set.Run, which waits for them. UDP sockets are only opened here: who reads them
// is internal/sip/transport's business.
package listen
