package docs

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

var update = flag.Bool("update", false, "write what the program prints into the console blocks, and the page of all keys")

// binary builds the program once for all commands.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "wyegate-docs")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "wyegate")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", path, "../cmd/wyegate")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return path, nil
})

func program(t *testing.T) string {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestMain(m *testing.M) {
	flag.Parse()
	status := m.Run()
	if path, err := binary(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(status)
}

// TestCommandsDoWhatIsShown runs the console blocks of each document in one folder and compares what they print.
func TestCommandsDoWhatIsShown(t *testing.T) {
	for _, doc := range documents(t) {
		blocks := slices.DeleteFunc(blocksOf(t, doc), func(b *block) bool { return b.lang != "console" })
		if len(blocks) == 0 {
			continue
		}
		t.Run(strings.TrimPrefix(doc, "../"), func(t *testing.T) {
			offline := &surroundings{dir: t.TempDir(), env: os.Environ()}
			writeFiles(t, offline.dir, doc)
			var live *surroundings
			for _, b := range blocks {
				where := offline
				if b.marker == "node" {
					if live == nil {
						live = startNode(t, doc)
					}
					where = live
				}
				got := where.session(t, b)
				if err := same(masked(b.lines), masked(got)); err != nil {
					if *update {
						rewrite(t, b, got)
						continue
					}
					t.Errorf("%s: %v\nprinted:\n%s", place(b), err, strings.Join(got, "\n"))
				}
			}
		})
	}
}

// surroundings is a folder with files, and what its commands see of the world.
type surroundings struct {
	dir  string
	env  []string
	tidy func(string) string // brings output back to the document's addresses; nil: none
}

// session runs the commands of a block one after the other. The result has the form of the block.
func (p *surroundings) session(t *testing.T, b *block) []string {
	t.Helper()
	path := filepath.Dir(program(t)) + string(os.PathListSeparator) + os.Getenv("PATH")
	var all []string
	status := 0
	for _, command := range commands(t, b) {
		for i, line := range strings.Split(command, "\n") {
			all = append(all, []string{"$ ", "> "}[min(i, 1)]+line)
		}
		if command == "echo $?" {
			all = append(all, itoa(status))
			continue
		}
		cmd := exec.Command("sh", "-c", command)
		cmd.Dir = p.dir
		if target, ok := strings.CutPrefix(command, "make "); ok {
			cmd = exec.Command("make", "--no-print-directory", "-C", root(t), target)
		}
		cmd.Env = append(slices.Clone(p.env), "PATH="+path, "NO_COLOR=1")
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		err := cmd.Run()
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			t.Fatalf("%s: %s: %v", place(b), command, err)
		}
		status = cmd.ProcessState.ExitCode()
		text := out.String()
		if p.tidy != nil {
			text = p.tidy(text)
		}
		text = strings.ReplaceAll(text, p.dir+"/", "")
		if text = strings.TrimRight(text, "\n"); text != "" {
			all = append(all, strings.Split(text, "\n")...)
		}
	}
	return all
}

// commands are the lines behind "$ ", each with those behind "> " that go on with it.
func commands(t *testing.T, b *block) []string {
	t.Helper()
	var all []string
	for _, line := range b.lines {
		if c, ok := strings.CutPrefix(line, "$ "); ok {
			all = append(all, c)
		} else if more, ok := strings.CutPrefix(line, "> "); ok && len(all) > 0 {
			all[len(all)-1] += "\n" + more
		}
	}
	if len(all) == 0 {
		t.Fatalf("%s: no command", place(b))
	}
	return all
}

// masks hide what differs from run to run.
var masks = []struct {
	find *regexp.Regexp
	put  string
}{
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z?`), "TIME"},
	{regexp.MustCompile(`\b\d\d:\d\d(:\d\d)?\b`), "TIME"},
	{regexp.MustCompile(`\b(\d+(\.\d+)? ?(ms|us|s|min|m|h|d)\b ?)+`), "SPAN "},
	{regexp.MustCompile(`\b[0-9a-f]{8,64}\b`), "DIGEST"},
	{regexp.MustCompile(`\b(v?\d+\.\d+\.\d+\S*|unknown|[0-9a-f]{7}(-dirty)?)(  up)`), "VERSION$3"},
	{regexp.MustCompile(`/tmp/\S+`), "PATH"},
	{regexp.MustCompile(`\b\d+ req/s|keys by rule \S+ default \S+`), "RATE"},
	{regexp.MustCompile(` \d+\.\d `), " RATE "},
	{regexp.MustCompile(`─+`), "─"},
	{regexp.MustCompile(`[ \t]+`), " "},
}

func masked(lines []string) []string {
	var all []string
	for _, line := range lines {
		for _, m := range masks {
			line = m.find.ReplaceAllString(line, m.put)
		}
		all = append(all, strings.TrimSpace(line))
	}
	return all
}

// same compares line by line; a line … of want stands for any lines.
func same(want, got []string) error {
	for i, line := range want {
		if line == "…" {
			rest := want[i+1:]
			for from := range len(got) - i + 1 {
				if same(rest, got[i+from:]) == nil {
					return nil
				}
			}
			return fmt.Errorf("nothing fits behind line %d", i+1)
		}
		if i >= len(got) {
			return fmt.Errorf("line %d is shown and was not printed: %s", i+1, line)
		}
		if line != got[i] {
			return fmt.Errorf("line %d\n  shown   %s\n  printed %s", i+1, line, got[i])
		}
	}
	if len(got) > len(want) {
		return fmt.Errorf("line %d was printed and is not shown: %s", len(want)+1, got[len(want)])
	}
	return nil
}

// rewrite puts what was printed into a block of its document.
func rewrite(t *testing.T, b *block, got []string) {
	t.Helper()
	lines := readLines(t, b.doc)
	// A block before this one may have been rewritten: the opening fence is found by its commands.
	first := b.lines[0]
	at := slices.Index(lines, first)
	if at < 1 || lines[at-1] != "```console" {
		t.Fatalf("%s: cannot be found again; its first command must be unlike any other", place(b))
	}
	end := at + slices.Index(lines[at:], "```")
	write(t, b.doc, strings.Join(slices.Concat(lines[:at], got, lines[end:]), "\n")+"\n")
	t.Logf("%s: rewritten", place(b))
}

// root is the folder of the module.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestMasksKeepWhatMatters: two outputs that differ in a decision must not be equal after masking.
func TestMasksKeepWhatMatters(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"server as1 by rule", "server as2 by rule", false},
		{"hash 0xfdea3fc9cc41581c", "hash 0xfdea3fc9cc41581d", false},
		{"up 3 d 4 h, weight 100", "up 12 ms, weight 100", true},
		{"weight 100", "weight 50", false},
		{"digest 9f1c22ab", "digest 51ab90e7", true},
		{"as1   up", "as1 up", true},
	} {
		if got := same(masked([]string{c.a}), masked([]string{c.b})) == nil; got != c.same {
			t.Errorf("%q and %q: same %v, want %v", c.a, c.b, got, c.same)
		}
	}
	if err := same([]string{"a", "…", "z"}, []string{"a", "b", "c", "z"}); err != nil {
		t.Error(err)
	}
	if same([]string{"a", "…", "y"}, []string{"a", "b", "z"}) == nil {
		t.Error("… swallowed a line that was asked for")
	}
}
