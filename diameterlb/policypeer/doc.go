// Package policypeer makes the servers of a policy cluster peers of the Diameter node: it is the policycluster.Peers
// that has real connections.
//
// One connection's way: the cluster calls Open. A peer.Peer with a dialer for that address is added to the node; its
// machine connects and exchanges CER/CEA, and tells Notice. Up goes to the Member with the identity of the CEA, and the
// Peer becomes the member's link, which the relay takes from there when the cluster offers the member for a request.
// What ends it, or Close, removes the Peer from the node, and when its machine is gone the Member is told Down. So a
// Peer of a cluster lives for one connection: when the next one is made is the cluster's affair, never Tc's.
//
// How requests end comes back from the relay through peer.Results on the message path: it counts and does not wait. One
// goroutine per connection waits for the end of the peer; Wait waits for those.
package policypeer
