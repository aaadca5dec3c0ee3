// Package sipproxy is the SIP proxy core: it validates, routes, chooses, edits and sends, and it remembers a transaction
// for 64*T1 so that nothing which happens to servers or configuration meanwhile parts what belongs together.
//
// The way of one request. The worker that owns its Call-ID gets it from its Inbox; sip.Msg lays the index, sip.Validate
// says what is owed; worker.read takes our own Routes off, opens the token and computes the transaction identity d.
// Is d known, it goes where the transaction is (memory); else worker.decide finds the first that applies: a flow or the
// way outwards for a server's request, a pool member's address, a token, a dialog hint, an OPTIONS to ourselves, the key
// by rules or the default key. compose writes it as splices over the received bytes, with a Via whose branch carries all
// that its responses need, and a Record-Route whose token carries the choice. launch hands it to the network; what
// fails at once goes to the next choice. A transaction's entry lives in memory, and while it waits for its final
// response its pending holds the lease, the log line and, where the client would not send it again, the received bytes.
//
// The way of one response is shorter: the top Via must be ours and its branch made here for the requester that the next
// Via names; that one value comes off, and it goes to that requester from the socket the request came in on. Memory is
// told, and needed for nothing.
//
// Whole calls work without memory: after a restart and at another node branch, token and To tag come out the same.
//
// Proxy.Run starts one goroutine per worker and no other. A worker owns everything that it touches (memory, hints, kept
// and parked requests, timers), takes no lock and, in steady state, allocates nothing. A Generation is immutable and
// swapped with one store; explain asks the same decide, on the worker that owns the Call-ID, with an Explanation that is
// not nil. The package opens no socket and resolves no name: transport and the engine's resolvers stand behind the small
// interfaces of network.go.
package sipproxy
