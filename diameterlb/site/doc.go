// Package site puts a primary and a secondary address of one policy cluster together (diameter.md 6.1, document
// [SITES]): one identity, two sites, and the secondary serves if and only if no server of the primary can.
//
// One failover's way: the last primary server is lost. Its policycluster.Cluster makes a view without it and says so
// (Changed); Run finds the primary out, the table gives "connecting", and the secondary cluster is told to dial. Its CEA
// carries the identity that the primary's carried, so the table gives "on_secondary": the hold on the secondary's active
// role is lifted, and the next request that asks Candidates goes there. Pins name identities and need no change.
//
// Each side is a whole policycluster.Cluster with a goroutine of its own; the Pair adds one that holds the state of the
// table. Nothing here waits for a network, and work for the secondary never holds up the primary.
package site
