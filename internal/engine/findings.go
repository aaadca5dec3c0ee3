package engine

import (
	"slices"

	"github.com/wyegate/wyegate/admin"
	"github.com/wyegate/wyegate/config"
	"github.com/wyegate/wyegate/dcr"
)

// ruleProblems brings the findings about a rule file into the form of those about the YAML, so that one list is shown.
func ruleProblems(list []dcr.Problem) []config.Problem {
	out := make([]config.Problem, 0, len(list))
	for _, p := range list {
		if p.Severity == dcr.Info {
			continue // shown by lint only (dcr.md 10.1)
		}
		out = append(out, config.Problem{
			File: p.File, Line: p.Line, Col: p.Col, Severity: config.Severity(p.Severity), Code: p.Code, Text: p.Text,
			Path: p.Path, Suggestion: p.Suggestion,
		})
	}
	return out
}

// Findings brings problems into the form of the API.
func Findings(list []config.Problem) []admin.Finding {
	out := make([]admin.Finding, 0, len(list))
	for _, p := range list {
		out = append(out, admin.Finding{
			File: p.File, Line: p.Line, Col: p.Col, Severity: string(p.Severity), Code: p.Code, Text: p.Text,
			Path: p.Path, Suggestion: p.Suggestion,
		})
	}
	return out
}

// shownFiles is the order in which the files of a configuration are reported: YAML as read, then rule files as named.
func shownFiles(cfg *config.Config) []string {
	var files []string
	for _, f := range cfg.Files {
		files = append(files, f.Shown)
	}
	for _, f := range cfg.RuleFiles {
		if !slices.Contains(files, f.Shown) {
			files = append(files, f.Shown)
		}
	}
	return files
}
