// Package demo is `wyegate demo`: the main job on loopback, in one process, with checks (operations.md 2.1).
//
// The way of one call through it: a phone of this package (message.go, phone.go, call.go: a small user agent of its own,
// so that what the edge writes is read by code that is not the edge's) sends an INVITE to the edge. The edge is the
// engine that `wyegate run` runs, with a generated configuration (files.go). It takes the room out of the To field and
// hands the call to one of four application servers (server.go, uas.go: sipgo for SIP, net/http for pages). The server
// answers with its name in X-Server; a browser (browser.go) then asks for the page of the same room and compares.
//
// Run owns every goroutine: the edge, the servers, the phones, the traffic generator. All of them have ended, all sockets
// are closed and the folder is gone when it returns. The package never asks the edge to do for a check what it does not
// do for traffic: checks look at answers on the wire and at the admin side only.
package demo
