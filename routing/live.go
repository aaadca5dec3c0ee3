package routing

// EachLive calls f with the hash of each live key and what is known of it, until f says false. Keys that begin or end
// meanwhile may be missed. No lock is held while f runs.
func (p *Pool) EachLive(f func(hash uint64, k LiveKey) bool) {
	var hashes []uint64
	for i := range p.shared.bindings.shards {
		sh := &p.shared.bindings.shards[i]
		hashes = hashes[:0]
		sh.mu.Lock()
		for h := range sh.live {
			hashes = append(hashes, h)
		}
		sh.mu.Unlock()
		for _, h := range hashes {
			if k, ok := p.Live(h); ok && !f(h, k) {
				return
			}
		}
	}
}
