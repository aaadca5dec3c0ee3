package dcr

import "slices"

// Count is what happened to one element over many evaluations.
type Count struct {
	Path    string `json:"path"`
	Line    int    `json:"line"`
	Rule    bool   `json:"rule"`    // it can give a key; otherwise it is a branch: a session case
	Reached uint64 `json:"reached"` // how often it was asked
	Value   uint64 `json:"value"`   // how often it gave a value, or held
	Null    uint64 `json:"null"`
}

// Coverage counts what messages reach in a rule set. It belongs to one goroutine.
type Coverage struct {
	rows  []Count
	index map[string]int
}

// NewCoverage lists the rules and session cases of a rule set, all with zero.
func NewCoverage(r *RuleSet) *Coverage {
	c := &Coverage{index: map[string]int{}}
	for _, rule := range r.rules {
		c.enter(Count{Path: rule.Path, Line: rule.Line, Rule: true})
	}
	for _, p := range r.prog {
		if p == nil {
			continue
		}
		for _, st := range p.steps {
			c.enter(Count{Path: st.path, Line: st.line})
		}
	}
	slices.SortStableFunc(c.rows, func(a, b Count) int { return a.Line - b.Line })
	for i, row := range c.rows {
		c.index[row.Path] = i
	}
	return c
}

func (c *Coverage) enter(row Count) {
	if _, known := c.index[row.Path]; !known {
		c.index[row.Path] = len(c.rows)
		c.rows = append(c.rows, row)
	}
}

// Add counts the steps of one evaluation.
func (c *Coverage) Add(tr *Trace) {
	for _, st := range tr.Steps {
		i, known := c.index[st.Rule]
		if !known {
			continue
		}
		c.rows[i].Reached++
		if st.Matched {
			c.rows[i].Value++
		} else {
			c.rows[i].Null++
		}
	}
}

// Counts gives all rows in the order of the file.
func (c *Coverage) Counts() []Count { return slices.Clone(c.rows) }

// Reached says how many of the rules were asked at least once, and which were not.
func (c *Coverage) Reached() (reached, rules int, missed []Count) {
	for _, row := range c.rows {
		switch {
		case !row.Rule:
			continue
		case row.Reached > 0:
			reached++
		default:
			missed = append(missed, row)
		}
		rules++
	}
	return reached, rules, missed
}
