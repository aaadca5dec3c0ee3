// Package policycluster keeps a cluster of external policy servers usable: it finds them, holds connections to as many
// as wanted, and says which of them a request may go to.
//
// One event's way: a connection ends. Its owner tells the Member (Down, with a cause); the edge waits in the inbox of the
// Cluster until Run takes it. The member becomes inactive, settle gives the active role to the best standby, publish
// makes a new view, and the next request that calls Candidates finds the new server in it. Names go the same way:
// resolver.Watch asks, Learnt puts the answer into the inbox, plan says what is kept, opened and closed.
//
// There is one engine. Selection Failover orders the servers of SRV records and has one active (diameter.md 5.1, document
// [HA]); selection Random picks some addresses, and all of them are active (5.2, document [PSX]).
//
// Run owns all state of the cluster; no lock guards it. Candidates, and the counting methods of a Member, are for the
// message path: they read one pointer or add to one word, and allocate nothing. The package opens no connection and
// knows no message: Peers, declared here, does both.
package policycluster
