package config

import (
	"errors"
	"io/fs"
	"testing"
)

func TestFormat(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"one level", "a:\n    b: 1\n    c: 2\n", "a:\n  b: 1\n  c: 2\n"},
		{"list under its key", "pools:\n- name: a\n  servers:\n  - {name: b}\n", "pools:\n  - name: a\n    servers:\n      - {name: b}\n"},
		{"blanks after the dash", "a:\n  -   name: x\n      b: 1\n", "a:\n  - name: x\n    b: 1\n"},
		{"comments stay with what they are about", "# top\na:\n      # of b\n      b: 1   # same line\n      # below b\n# of c\nc: 1\n",
			"# top\na:\n  # of b\n  b: 1   # same line\n  # below b\n# of c\nc: 1\n"},
		{"empty lines", "\n\na: 1\n\n\n\nb: 2\n\n\n", "a: 1\n\nb: 2\n"},
		{"line ends", "a: 1  \r\nb: 2\t\r\n", "a: 1\nb: 2\n"},
		{"no line end", "a: 1", "a: 1\n"},
		{"flow over lines", "a:\n    - {b: 1,\n       c: 2}\n    - {d: 1}\n", "a:\n  - {b: 1,\n     c: 2}\n  - {d: 1}\n"},
		{"literal", "a:\n    b: |\n        one \n\n\n          two\n    c: 1\n", "a:\n  b: |\n      one \n\n\n        two\n  c: 1\n"},
		{"quotes and numbers", "a: 0123\nb: \"x\"\nc: 'y'\n", "a: 0123\nb: \"x\"\nc: 'y'\n"},
		{"only comments", "# nothing\n", "# nothing\n"},
		{"lists in lists", "a:\n - - x\n   - y\n", "a:\n  - - x\n    - y\n"},
		{"lists in lists, spaced", "a:\n-    -    x\n     -    y\n", "a:\n  - -    x\n    - y\n"},
	} {
		got, err := Format([]byte(c.in))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %v\n%q\nwant\n%q", c.name, err, got, c.want)
			continue
		}
		if twice, err := Format(got); err != nil || string(twice) != string(got) {
			t.Errorf("%s: formatted twice it differs (%v)\n%q", c.name, err, twice)
		}
	}
	for _, bad := range []string{"a: [", "a: 1\n---\nb: 2\n", "a: 1\na: 2\n", "a: \xff\n"} {
		if _, err := Format([]byte(bad)); !errors.Is(err, ErrFormat) {
			t.Errorf("%q gives %v", bad, err)
		}
	}
}

func TestFormatKeepsMeaning(t *testing.T) {
	fsys := fixtureFS(t)
	all, _ := fs.Glob(fsys, "*/*.yaml")
	done := 0
	for _, name := range all {
		out, err := Format(fsys[name].Data)
		if err != nil {
			continue // a broken file that is no YAML
		}
		done++
		_, a, _ := document(fsys[name].Data)
		if _, b, err := document(out); err != nil || string(a) != string(b) {
			t.Errorf("%s means something else when formatted: %v", name, err)
		}
	}
	if done < 90 {
		t.Errorf("only %d files could be formatted", done)
	}
}
