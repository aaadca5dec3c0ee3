package config

// nearest gives the word within two edits of text, if one alone is nearest; else "".
func nearest(text string, words []string) string {
	best, found, tied := 3, "", false
	for _, w := range words {
		switch n := distance(text, w, best); {
		case n < best:
			best, found, tied = n, w, false
		case n == best && n < 3 && w != found:
			tied = true
		}
	}
	if tied || best >= len([]rune(text)) { // two edits turn any two letters into any others
		return ""
	}
	return found
}

// didYouMean is the tail of a text with a suggestion.
func didYouMean(s string) string {
	if s == "" {
		return ""
	}
	return "; did you mean \"" + s + "\"?"
}

// distance counts the edits (insert, delete, replace, swap of neighbours) from a to b; a value above limit is only known
// to be above it.
func distance(a, b string, limit int) int {
	x, y := []rune(a), []rune(b)
	if d := len(x) - len(y); d > limit || -d > limit || len(x) > 64 {
		return limit + 1
	}
	before, last, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(y)]
}
