// Package obs is what others see of the process: metric names and their children, the access log, attribute keys of the
// structured log. A message adds to counters that were resolved when its generation was built and fills a Record of its
// worker's Ring; the goroutine in AccessLog.Run formats and writes. Nothing here is looked up per message.
package obs
