// Package resolver asks DNS: ENUM numbers for rules (dcr.md 3.5 and 14), addresses of servers that are configured by
// name, next hops of requests that go outwards. It keeps what it learnt for its TTL, and the last good answer when
// nobody answers any more.
//
// One number: ENUM.Lookup is asked by a rule and answers from the cache, without waiting; what it does not know is
// missing. The proxy parks the request and calls Ask; requests for the same number share one query, which runs on a
// goroutine of its own within the budget. When it is over, the cache has an answer, even if that answer is "nothing",
// and everybody who asked is told.
//
// A cluster of servers behind a name is a Watch: SRV records with the addresses of their targets, or addresses alone,
// asked for again when the TTL ends (diameter.md 5.1). What is made of a set is its owner's affair.
//
// Readers of a cache take no lock: it is an array of atomic pointers to answers that never change, and whoever writes
// holds the lock of the query table. Run owns the goroutines; what is asked for before it begins waits for it, and after it
// has ended every Ask is refused. The package imports nothing of the module; the engine fits it to the interfaces of those
// who ask.
//
// A next hop outwards (Next) is NAPTR, SRV and addresses in the order of RFC 3263; the answer is the list of places to try,
// and who asks goes through it (sip-http.md SX-14).
package resolver
