package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

var (
	inlineCode = regexp.MustCompile("`([^`]+)`")
	metricName = regexp.MustCompile(`wyegate_[a-z0-9_]+`)
	linkTarget = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	flagWord   = regexp.MustCompile(`^--[a-z][a-z-]*`)
)

// TestVerbsExist looks up every `wyegate …` of the texts and of the sh blocks, and each of its flags, in the program's
// own help, and every `make …` in the Makefile.
func TestVerbsExist(t *testing.T) {
	makefile := strings.Join(readLines(t, "../Makefile"), "\n")
	for _, doc := range documents(t) {
		for _, c := range commandsOf(t, doc) {
			words := strings.Fields(c)
			switch {
			case words[0] == "make" && len(words) > 1:
				if !strings.Contains(makefile, "\n"+words[1]+":") {
					t.Errorf("%s: `%s`: no such target", doc, c)
				}
			case words[0] == "wyegate" && len(words) > 1:
				checkVerb(t, doc, c, words[1:])
			}
		}
	}
}

// commandsOf gives what a document says in code: inline, and lines of sh blocks.
func commandsOf(t *testing.T, doc string) []string {
	t.Helper()
	var all []string
	inside := ""
	for _, line := range readLines(t, doc) {
		if fence := strings.HasPrefix(line, "```"); fence {
			inside = map[bool]string{true: strings.TrimPrefix(line, "```"), false: ""}[inside == ""]
			if inside == "" && line != "```" {
				inside = "text"
			}
			continue
		}
		switch inside {
		case "":
			for _, m := range inlineCode.FindAllStringSubmatch(line, -1) {
				all = append(all, m[1])
			}
		case "sh":
			all = append(all, strings.TrimPrefix(line, "sudo "))
		}
	}
	return slices.DeleteFunc(all, func(c string) bool {
		return !strings.HasPrefix(c, "wyegate ") && !strings.HasPrefix(c, "make ")
	})
}

// checkVerb asks the program for help about the verb. Words behind it are arguments.
func checkVerb(t *testing.T, doc, command string, words []string) {
	t.Helper()
	var verb, flags []string
	for _, w := range words {
		switch {
		case flagWord.MatchString(w):
			flags = append(flags, flagWord.FindString(w))
		case len(flags) == 0 && len(verb) < 3 && regexp.MustCompile(`^[a-z]+$`).MatchString(w):
			verb = append(verb, w)
		}
	}
	for n := len(verb); n > 0; n-- {
		text, ok := help(t, strings.Join(verb[:n], " "))
		if !ok {
			continue
		}
		for _, f := range flags {
			if !strings.Contains(text, f) {
				t.Errorf("%s: `%s`: %v has no flag %s", doc, command, verb[:n], f)
			}
		}
		return
	}
	t.Errorf("%s: `%s`: no such verb", doc, command)
}

var helps sync.Map

func help(t *testing.T, verb string) (string, bool) {
	t.Helper()
	if text, ok := helps.Load(verb); ok {
		return text.(string), text != ""
	}
	out, err := exec.Command(program(t), append(strings.Fields(verb), "--help")...).CombinedOutput()
	text := string(out)
	if err != nil {
		text = ""
	}
	helps.Store(verb, text)
	return text, text != ""
}

// TestMetricsAreListed: a metric that a document names is in metrics.md, and so in the program, which a test of
// internal/obs holds against it. Histograms may be named with _bucket, _sum and _count.
func TestMetricsAreListed(t *testing.T) {
	list := strings.Join(readLines(t, "metrics.md"), "\n")
	for _, doc := range documents(t) {
		for i, line := range readLines(t, doc) {
			for _, name := range metricName.FindAllString(line, -1) {
				base := name
				for _, suffix := range []string{"_bucket", "_sum", "_count"} {
					base = strings.TrimSuffix(base, suffix)
				}
				if !strings.Contains(list, "\n"+base+" ") && !strings.HasSuffix(name, "_") {
					t.Errorf("%s:%d: %s is not in metrics.md", doc, i+1, name)
				}
			}
		}
	}
}

// TestLinksLeadSomewhere looks for the file of every link within the project.
func TestLinksLeadSomewhere(t *testing.T) {
	for _, doc := range documents(t) {
		for i, line := range readLines(t, doc) {
			for _, m := range linkTarget.FindAllStringSubmatch(line, -1) {
				if _, err := os.Stat(filepath.Join(filepath.Dir(doc), m[1])); err != nil {
					t.Errorf("%s:%d: link to %s: %v", doc, i+1, m[1], err)
				}
			}
		}
	}
}
