// Package httpproxy is what the HTTP fronts share: the request view, the gate, trust fields, stickiness, and the one
// function that decides where a request goes. It opens no connection and starts no goroutine; h1 (and later h2) does.
//
// One request: the front indexes the head into a View and calls Decider.Decide with the Listener of the current
// Generation. Admit refuses what no server may see; the matcher finds the App by host and path; fields that only a
// trusted peer may send are cut; a token in cookie or path parameter, or the route behind a session id, names a server;
// else the rules or the default key give a key, and a web application takes turns. The Choice holds the lease. The front
// writes the request with AppendRequestFields, offers it elsewhere with Choice.Next while that is safe, writes the
// response with AppendResponseFields, and gives the lease back with Choice.Done.
//
// Explain is Decide with an Explanation: nothing is leased and nothing is counted.
//
// Requirements (sip-http.md section 2) and where they are kept: HF-1 to HF-5 in internal/http1, HF-6 in gate.go, HH-1 in
// internal/http1, HH-2 in via.go, HH-3 in trust.go and forwarded.go, HS-1 to HS-4 in session.go, cookie.go and decide.go;
// the others in h1.
package httpproxy
