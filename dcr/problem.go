package dcr

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Severity says what a finding does to its file: an error refuses it, a warning refuses it under --strict, an info is
// shown by lint only.
type Severity string

// The three severities of section 10.1.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Info    Severity = "info"
)

// MaxProblems is how many findings of one file are shown before "and N more".
const MaxProblems = 100

// Problem is one finding in a rule file. Line and Col start at 1; a column is a character of the file as written.
type Problem struct {
	File       string   `json:"file"`
	Line       int      `json:"line"`
	Col        int      `json:"col"`
	Severity   Severity `json:"severity"`
	Code       string   `json:"code"`
	Text       string   `json:"text"`
	Path       string   `json:"path"`       // of the element: "/sip-rules/if[1]/else"; empty outside of the root
	Suggestion string   `json:"suggestion"` // the name that was probably meant; empty when none is near
}

// String is the line that check, lint and the log print.
func (p Problem) String() string {
	return fmt.Sprintf("%s:%d:%d: %s: %s: %s", p.File, p.Line, p.Col, p.Severity, p.Code, p.Text)
}

// HasErrors reports whether one of the findings refuses its file.
func HasErrors(list []Problem) bool {
	return slices.ContainsFunc(list, func(p Problem) bool { return p.Severity == Error })
}

// Shown cuts the findings of one file to the first MaxProblems and says how many are left out.
func Shown(list []Problem) (shown []Problem, more int) {
	if len(list) <= MaxProblems {
		return list, 0
	}
	return list[:MaxProblems], len(list) - MaxProblems
}

// sortProblems orders findings by place; of one place the lower code comes first, and the same finding is said once.
func sortProblems(list []Problem) []Problem {
	slices.SortStableFunc(list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col), strings.Compare(a.Code, b.Code))
	})
	return slices.CompactFunc(list, func(a, b Problem) bool { return a == b })
}

// severities holds what is not an error; every other code is.
var severities = map[string]Severity{
	"DCR114": Info, "DCR301": Warning, "DCR302": Warning, "DCR303": Warning, "DCR304": Warning, "DCR305": Warning,
	"DCR306": Warning, "DCR307": Warning, "DCR310": Warning, "DCR311": Warning, "DCR312": Info, "DCR313": Warning,
	"DCR314": Info, "DCR315": Warning, "DCR401": Warning, "DCR402": Warning, "DCR403": Warning, "DCR405": Warning,
	"DCR406": Warning, "DCR407": Info, "DCR408": Warning, "DCR409": Warning, "DCR604": Warning,
}

func severityOf(code string) Severity {
	if s, ok := severities[code]; ok {
		return s
	}
	return Error
}

// nearest gives the one candidate that is at most two edits away; two equally near ones are no suggestion.
func nearest(word string, candidates []string) string {
	best, bestAt, twice := "", 3, false
	for _, c := range candidates {
		switch d := distance(word, c, bestAt); {
		case d < bestAt:
			best, bestAt, twice = c, d, false
		case d == bestAt && d < 3:
			twice = true
		}
	}
	if twice || bestAt >= len(word) {
		return ""
	}
	return best
}

// distance counts single-character edits between a and b, a swap of neighbours being one; it stops at limit+1.
func distance(a, b string, limit int) int {
	if d := len(a) - len(b); d > limit || -d > limit {
		return limit + 1
	}
	prev2, prev, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], prev2[j-2]+1)
			}
		}
		prev2, prev, row = prev, row, prev2
	}
	return prev[len(b)]
}

func didYouMean(s string) string {
	if s == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", s)
}
