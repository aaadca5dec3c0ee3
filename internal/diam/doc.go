// Package diam is the wire layer of Diameter (RFC 6733): received bytes in, headers, AVPs and edits out. It opens
// nothing, waits for nothing, and allocates nothing per message.
//
// One message: the reader of a connection reads into Framer.Space, tells it with Framer.Filled, and takes whole messages
// from Framer.Next; a length that cannot be is refused before a buffer is taken for it. ParseHeader reads the twenty
// bytes of the header. Walk goes over the AVPs without copying or decoding them: it stops at the first AVP whose length
// cannot be, so that it ends on every input and never reads outside the message. What is relayed leaves as the bytes it
// came in, with SetHopByHop, SetFlags and AppendRouteRecord applied; what no edit names is untouched.
//
// What we say ourselves is written by a Builder. AppendError writes the answer of RFC 6733 7.2 to a request that cannot
// be relayed.
package diam
