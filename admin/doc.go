// Package admin is the HTTP API of one node: state, explanations, drains, configuration, events. It serves the unix
// sockets of the configuration, each with a role, and the metrics address (/metrics, /healthz, /readyz).
//
// One request: the socket it came by gives the role, the kernel gives the caller's user for the audit; a route that
// changes something asks for its role, checks If-Match and hands a Change to the Node, which previews it (dry run) or
// does it. An error becomes application/problem+json in one place, problem.go. Streams (events, a drain's progress) are
// server-sent events whose reader keeps its own place, so that a slow one holds up nobody.
//
// The package decides nothing about traffic and keeps no state but the locks of its own requests: everything is asked
// of the Node, which the engine implements. Run starts the goroutines of its listeners and waits for them.
package admin
