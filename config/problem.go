package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Severity says what a Problem does to its file: an error refuses it, a warning does not.
type Severity string

// The severities that this package gives.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// Pos is a place in a file. Line and Col count from 1, columns in characters; the zero value is no place.
type Pos struct {
	File string // as shown to people
	Line int
	Col  int
}

// Problem is one finding (operations.md 3.5). Its JSON form is the same object in every command and answer.
type Problem struct {
	File       string   `json:"file"`
	Line       int      `json:"line"`
	Col        int      `json:"col"`
	Severity   Severity `json:"severity"`
	Code       string   `json:"code"`
	Text       string   `json:"text"`
	Path       string   `json:"path"`       // dotted path of the key, items by name: "pools.appservers.servers.as1.weight"
	Suggestion string   `json:"suggestion"` // what may stand there instead; empty when nothing is near

	more int // findings that this one stands for: the last of a file, "and N more"
}

// String is the line that check prints: FILE:LINE:COL: SEVERITY: CODE: text.
func (p Problem) String() string {
	if p.Line == 0 {
		return fmt.Sprintf("%s: %s", p.File, p.Text)
	}
	return fmt.Sprintf("%s:%d:%d: %s: %s: %s", p.File, p.Line, p.Col, p.Severity, p.Code, p.Text)
}

// HasErrors says whether one of the problems refuses the configuration.
func HasErrors(problems []Problem) bool {
	return slices.ContainsFunc(problems, func(p Problem) bool { return p.Severity == Error })
}

// maxPerFile is how many findings of one file are shown (operations.md 3.5).
const maxPerFile = 100

// Sorted brings findings into the order in which they are printed: files in the given order, those not named after
// them, and by place within a file. Of one file the first hundred stay; a last entry without place and code says how
// many more there were, and is an error when one of those was. A list that was sorted may be added to and sorted again.
func Sorted(problems []Problem, files []string) []Problem {
	rank := func(f string) int {
		if i := slices.Index(files, f); i >= 0 {
			return i
		}
		return len(files)
	}
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(rank(a.File), rank(b.File)), strings.Compare(a.File, b.File), cmp.Compare(a.more, b.more),
			cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col), strings.Compare(a.Code, b.Code))
	})
	problems = slices.Compact(problems)
	var out []Problem
	for len(problems) > 0 {
		n := 1
		for n < len(problems) && problems[n].File == problems[0].File {
			n++
		}
		out = append(out, capped(problems[:n])...)
		problems = problems[n:]
	}
	return out
}

func capped(list []Problem) []Problem {
	if len(list) <= maxPerFile {
		return list
	}
	more := Problem{File: list[0].File, Severity: Warning}
	for _, p := range list[maxPerFile:] {
		more.more += max(1, p.more)
		if p.Severity == Error {
			more.Severity = Error
		}
	}
	more.Text = fmt.Sprintf("and %d more", more.more)
	return append(slices.Clone(list[:maxPerFile]), more)
}
