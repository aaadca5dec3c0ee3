// Package websocket is the wire layer of the WebSocket protocol (RFC 6455) as SIP uses it (RFC 7118): received bytes in,
// messages and answers out. It opens nothing, waits for nothing, and knows nothing of SIP.
//
// The way of a message: Rules.Accept judges the request that opens the connection and writes the answer. From then on
// what is received goes into a Reader, which cuts it into frames, undoes the mask in place, joins fragments, lets control
// frames pass between them, and gives one whole message at a time, lent until the next octets are fed. AppendFrame writes
// what goes the other way. Extensions are never agreed on, so a reserved bit is an error.
//
// A message of one frame is not copied. Memory grows with what has come, never with what a length announces.
package websocket
