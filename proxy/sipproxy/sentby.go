package sipproxy

// SentBy is the host and port that a listener writes into Via; empty for a listener that the generation does not have.
// Health probes leave by the sockets of traffic, and their answers must find back like any other.
func (g *Generation) SentBy(listener string) string {
	for _, l := range g.listeners {
		if l.Listener.Name == listener {
			return l.sent
		}
	}
	return ""
}
