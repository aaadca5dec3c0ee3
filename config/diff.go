package config

import (
	"fmt"
	"slices"
	"strings"
)

// Diff compares the configuration that runs with a new one as Show writes them with defaults, and gives a unified diff;
// nothing when they are equal.
func Diff(running, next *Config) string {
	return string(Unified(Show(running, true), Show(next, true), "running", "new"))
}

// Unified gives a unified diff of two texts with three lines around each change; nothing when they are equal. Each hunk
// names the keys around it.
func Unified(old, new []byte, oldName, newName string) []byte {
	a, b := split(old), split(new)
	script := edits(a, b)
	var out []byte
	for i := 0; i < len(script); {
		if script[i].op == ' ' {
			i++
			continue
		}
		if out == nil {
			out = fmt.Appendf(out, "--- %s\n+++ %s\n", oldName, newName)
		}
		from, to := max(0, i-3), hunkEnd(script, i)
		out = hunk(out, script[from:to], a)
		i = to
	}
	return out
}

func split(text []byte) []string {
	s := strings.TrimSuffix(string(text), "\n")
	if s == "" {
		return nil
	}
	return strings.Split(s, "\n")
}

// edit is one line: kept, taken out or put in.
type edit struct {
	op   byte // ' ', '-' or '+'
	a, b int  // lines before it in either text
	text string
}

// hunkEnd finds the end of a hunk: three kept lines behind its last change, unless the next change is near.
func hunkEnd(script []edit, i int) int {
	last := i
	for j := i; j < len(script) && j-last <= 6; j++ {
		if script[j].op != ' ' {
			last = j
		}
	}
	return min(len(script), last+4)
}

func hunk(out []byte, part []edit, a []string) []byte {
	var na, nb int
	first := slices.IndexFunc(part, func(e edit) bool { return e.op != ' ' })
	for _, e := range part {
		if e.op != '+' {
			na++
		}
		if e.op != '-' {
			nb++
		}
	}
	start := func(before, n int) int {
		if n == 0 {
			return before
		}
		return before + 1
	}
	out = fmt.Appendf(out, "@@ -%d,%d +%d,%d @@%s\n", start(part[0].a, na), na, start(part[0].b, nb), nb, around(a, part[first].a))
	for _, e := range part {
		out = append(out, e.op)
		out = append(out, e.text...)
		out = append(out, '\n')
	}
	return out
}

// around names the keys that a line stands under.
func around(a []string, line int) string {
	var path []string
	below := 1 << 30
	for i := min(line, len(a)-1); i >= 0; i-- {
		text := strings.TrimLeft(a[i], " ")
		at := len(a[i]) - len(text)
		if item, ok := strings.CutPrefix(text, "- name: "); ok && at < below {
			path, below = append(path, item), at
		} else if key, ok := strings.CutSuffix(text, ":"); ok && at < below && i < line {
			path, below = append(path, strings.TrimPrefix(key, "- ")), at
		}
	}
	var b strings.Builder
	for i := len(path) - 1; i >= 0; i-- {
		b.WriteByte(" ."[min(1, len(path)-1-i)])
		b.WriteString(path[i])
	}
	return b.String()
}

// edits gives the shortest script from a to b: what both ends share is kept, the rest goes by the longest common
// subsequence. Two texts of which both rests are longer than that can be asked for are replaced as a whole.
func edits(a, b []string) []edit {
	var script []edit
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	for i := range head {
		script = append(script, edit{' ', i, i, a[i]})
	}
	script = middle(script, a, b, head, len(a)-tail, len(b)-tail)
	for i := range tail {
		x, y := len(a)-tail+i, len(b)-tail+i
		script = append(script, edit{' ', x, y, a[x]})
	}
	return script
}

const maxTable = 1 << 24 // cells of the table of common lengths

func middle(script []edit, a, b []string, head, endA, endB int) []edit {
	i, j, n, m := head, head, endA-head, endB-head
	if n > 0 && m > 0 && n*m <= maxTable {
		common := make([]int32, (n+1)*(m+1)) // of what is left from i and j on
		for x := n - 1; x >= 0; x-- {
			for y := m - 1; y >= 0; y-- {
				if a[head+x] == b[head+y] {
					common[x*(m+1)+y] = common[(x+1)*(m+1)+y+1] + 1
				} else {
					common[x*(m+1)+y] = max(common[(x+1)*(m+1)+y], common[x*(m+1)+y+1])
				}
			}
		}
		for i < endA && j < endB {
			x, y := i-head, j-head
			switch {
			case a[i] == b[j]:
				script = append(script, edit{' ', i, j, a[i]})
				i, j = i+1, j+1
			case common[(x+1)*(m+1)+y] >= common[x*(m+1)+y+1]:
				script = append(script, edit{'-', i, j, a[i]})
				i++
			default:
				script = append(script, edit{'+', i, j, b[j]})
				j++
			}
		}
	}
	for ; i < endA; i++ {
		script = append(script, edit{'-', i, j, a[i]})
	}
	for ; j < endB; j++ {
		script = append(script, edit{'+', i, j, b[j]})
	}
	return script
}
