// Package proxy is what SIP and HTTP have in common: an application as a message meets it (Target), the key a message
// has for it, the sealed token that carries a choice in Record-Route, cookie or path, and the explanation of a decision.
//
// One initial request: the listener's Matcher finds the Target by host and path; Target.Key runs the rules, else joins
// the default key; the protocol's router acquires a server on Target.Pool with the hash. Known traffic never gets here:
// its token, opened by Secrets.ReadToken, names server and key hash.
//
// The package starts no goroutine and takes no lock.
package proxy
