// Package peer is one hop of Diameter: what may be sent to, and is awaited from, the node behind a connection.
//
// Node is this Diameter node. A connection that somebody opens is given to Node.Serve, whose goroutine becomes its
// reader; one that we open is dialled by the machine of its Peer. Either way a Link is made, and its first message is CER
// or CEA, read by base.ReadCapabilities and judged on the reader (diameter.md 2.3). What passed goes to the machine as an
// event; the machine takes a row of the table of RFC 6733 5.6 (Next), settles an election or a second CER, and gives the
// link to a Receiver of the relay. From then on the reader hands every message that is no base command to that
// Receiver, which may have it until it returns; DWR is answered by the reader at once, ahead of the queue; DWA, DPR and
// DPA go to the machine.
//
// Link.Send puts one copy of a message into the write queue, Link.Flush writes what the socket takes without waiting,
// and the writer goroutine does the rest, so that no reader waits for a slow peer. The watchdog of RFC 3539 runs on the
// machine's timer; a reader only notes when it last read. When a link ends, whoever saw it first names the cause, the
// machine tells the Receiver, whose pending requests go elsewhere, and dials again after Tc.
//
// Goroutines: reader and writer per link, one machine per connection that a peer may have, and one per dial. All are
// waited for by Node.Run. Time is read from package time alone, so that testing/synctest replaces it.
package peer
