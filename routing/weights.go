package routing

// maxVirtual is the most virtual members one server has in the hash: weights are rounded to it (decisions.md).
const maxVirtual = 16

// maxTurns is the most turns one server has in a round of round robin.
const maxTurns = 256

// reduce divides the weights by their common divisor and, if the heaviest is then above limit, scales them so that it
// is limit; nothing above zero is rounded to zero. The result depends on the set of weights, not on their order.
func reduce(weights []int, limit int) []int {
	g, top := 0, 0
	for _, w := range weights {
		g = gcd(g, w)
		top = max(top, w)
	}
	out := make([]int, len(weights))
	if g == 0 {
		return out
	}
	top /= g
	for i, w := range weights {
		w /= g
		if top > limit && w > 0 {
			w = max(1, (w*limit+top/2)/top)
		}
		out[i] = w
	}
	return out
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// smooth lays out one round: each member as often as its count says, spread as evenly as it goes.
func smooth(counts []int) []uint16 {
	total := 0
	for _, c := range counts {
		total += c
	}
	round := make([]uint16, 0, total)
	credit := make([]int, len(counts))
	for range total {
		best := -1
		for i, c := range counts {
			credit[i] += c
			if c > 0 && (best < 0 || credit[i] > credit[best]) {
				best = i
			}
		}
		credit[best] -= total
		round = append(round, uint16(best))
	}
	return round
}
