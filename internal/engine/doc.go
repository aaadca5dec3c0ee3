// Package engine builds generations from configurations and runs them. It is the only package that knows all others.
//
// One configuration: config.Load reads it, Build turns it into a Draft (tables, rule sets, applications; nothing opened,
// nothing started), Engine.apply binds what is new of its sockets, swaps the generation in with one store, and lets the
// old one end. `wyegate check` is the first two steps and nothing else; `explain` is a Draft and the deciding code of
// the proxies.
//
// Every goroutine of the process is started in Engine.Run and waited for there.
package engine
