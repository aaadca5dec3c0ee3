package resolver

import "time"

// breaker fails look-ups at once while no resolver answers (dcr.md section 14): after 20 failures in a row for 2 s,
// with one query every 500 ms to see whether it is over. Whoever asks holds the lock of the query table.
type breaker struct {
	failures int
	until    time.Time
	probe    time.Time
}

const (
	breakAfter = 20
	breakFor   = 2 * time.Second
	breakProbe = 500 * time.Millisecond
)

func (b *breaker) allow(now time.Time) bool {
	if !now.Before(b.until) {
		return true
	}
	if now.Before(b.probe) {
		return false
	}
	b.probe = now.Add(breakProbe)
	return true
}

func (b *breaker) failed(now time.Time) {
	b.failures++
	if b.failures >= breakAfter {
		if !now.Before(b.until) {
			b.probe = now.Add(breakProbe)
		}
		b.until = now.Add(breakFor)
	}
}

func (b *breaker) worked() { *b = breaker{} }
