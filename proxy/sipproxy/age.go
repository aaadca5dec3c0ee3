package sipproxy

// busyOn says whether a transaction is open on a client's connection: a request that came on it, or that went into it, and
// has had no final response (sip-http.md 11.5). It is asked of connections that have reached their age, so it may look
// at all that waits.
func (w *worker) busyOn(flow uint64) bool {
	for i := uint32(1); i <= w.open.used; i++ {
		q := w.open.at(i)
		if q.slot == 0 || q.over {
			continue
		}
		if q.in.Flow == flow {
			return true
		}
		if e := w.mem.at(q.slot); e.place == toFlow && e.flow() == flow {
			return true
		}
	}
	return w.parking.from(flow)
}
