// Package engine builds generations from configurations and runs them. It is the only package that knows all others.
//
// One configuration: config.Load reads it, Build turns it into a Draft (tables, rule sets, applications; nothing opened,
// nothing started), Engine.offer holds it against what runs (guard) and, unless it is a preview, bind opens what is new
// of its sockets and reads the secrets, swap puts the Generation in force with one store, and the history keeps it.
// `wyegate check` is the first two steps and nothing else; `explain` is a Draft and the deciding code of the proxies.
//
// A Generation is never written once it is in force: a confirmation, or new addresses of a name, store a copy of it. What
// is read once, when the process starts, is listed in fixed.go.
//
// Every goroutine of the process is started in Engine.Run and waited for there.
package engine
