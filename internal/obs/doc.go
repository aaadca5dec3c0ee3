// Package obs is what others see of the process: metric names and their children, the access log, dispositions in
// words, events, attribute keys of the structured log.
//
// One message, as this package sees it: the worker that handles it adds to counters which Metrics resolved when the
// generation was built, fills a Record and puts it into a Ring; the goroutine in AccessLog.Run takes it out, formats
// and writes. States (what a server is, how full a table is) are no counters: Metrics asks the engine for a State once
// per scrape. Nothing here is looked up per message, nothing waits: a full ring drops the record and counts.
//
// AccessLog.Run and nobody else owns the file and the reading side of the rings. The package reads no configuration and
// opens no socket.
package obs
