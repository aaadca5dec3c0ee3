// Package certs holds the certificates by name and makes the TLS settings of listeners and of connections to servers
// (sip-http.md section 13).
//
// The way of a certificate: Load reads the files of a configuration and checks each pair, or fails and has changed
// nothing; Use puts the whole table in force with one store. Run watches the folders of the files: a pair that has
// changed is read and checked, and the table is replaced by one with the new pair in it; a pair that does not pass leaves
// the old one and tells Config.Refused.
//
// The way of a handshake: the settings that Server made ask the table of that moment, so a new certificate serves the
// next handshake and no connection that is open notices. The name that the client asks for decides: exact name, wildcard,
// then the certificate that the listener names. Tickets are sealed with keys derived from the secrets and the day, so
// every node resumes what another has begun.
//
// Run owns the only goroutine. Nothing here dials, accepts or logs.
package certs
