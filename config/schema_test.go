package config

import (
	"bytes"
	"encoding/json"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the schemas of deploy/schema")

// The committed schemas are what the types give (F18).
func TestCommittedSchemas(t *testing.T) {
	for name, want := range map[string][]byte{"wyegate-v1.schema.json": Schema(), "wyegate-test-v1.schema.json": TestSchema()} {
		file := filepath.Join("..", "deploy", "schema", name)
		if *update {
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the types give (%v); write it by go test ./config -update", file, err)
		}
	}
}

// Every key has a type or a reference, and a description.
func TestSchemaDescribesEveryKey(t *testing.T) {
	for _, text := range [][]byte{Schema(), TestSchema()} {
		var root map[string]any
		if err := json.Unmarshal(text, &root); err != nil {
			t.Fatal(err)
		}
		keys := 0
		var walk func(v any, at string)
		walk = func(v any, at string) {
			m, ok := v.(map[string]any)
			if !ok {
				return
			}
			if props, ok := m["properties"].(map[string]any); ok {
				for k, p := range props {
					keys++
					if d, _ := p.(map[string]any)["description"].(string); d == "" {
						t.Errorf("%s.%s has no description", at, k)
					}
				}
				if m["additionalProperties"] != false {
					t.Errorf("%s lets unknown keys pass", at)
				}
			}
			for k, c := range m {
				walk(c, at+"."+k)
			}
		}
		walk(root, "")
		if keys < 35 {
			t.Errorf("only %d keys", keys)
		}
	}
}

// The tags of the types are right: defaults are values that the key takes, bounds can be read, every key is described.
func TestTags(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var walk func(typ reflect.Type)
	walk = func(typ reflect.Type) {
		if seen[typ] {
			return
		}
		seen[typ] = true
		names := map[string]bool{}
		for _, f := range fieldsOf(typ) {
			if names[f.name] || f.doc == "" || f.min != f.min || f.max != f.max {
				t.Errorf("%v.%s: twice, without doc, or with a wrong bound", typ, f.name)
			}
			names[f.name] = true
			e := elem(f.typ)
			s := scalarOf(e)
			if s == nil {
				walk(e)
				continue
			}
			if f.def == "" || e == reflect.TypeFor[Path]() {
				continue
			}
			for p := range strings.SplitSeq(f.def, ",") {
				v := reflect.New(e).Elem()
				if bad := s.parse(p, f, v); bad != nil {
					t.Errorf("%v.%s: default %q: %s", typ, f.name, p, bad.text)
				}
			}
		}
	}
	walk(reflect.TypeFor[Config]())
	walk(reflect.TypeFor[TestFile]())
	if len(seen) < 40 {
		t.Errorf("only %d types seen", len(seen))
	}
}

// validator is a foreign reader of JSON Schema and of YAML.
const validator = `
import sys, json, yaml, jsonschema
schema = json.load(open(sys.argv[1]))
jsonschema.Draft202012Validator.check_schema(schema)
v = jsonschema.Draft202012Validator(schema)
for f in sys.argv[2:]:
    try:
        errors = [e.message for e in v.iter_errors(yaml.safe_load(open(f, encoding="utf-8")))]
    except Exception as e:
        errors = ["unreadable"]
    print(f + "\t" + (errors[0][:120] if errors else ""))
`

// Another program's validator accepts every good file and refuses the broken ones that a schema can know (F18).
func TestSchemaAgainstForeignValidator(t *testing.T) {
	if err := exec.Command("python3", "-c", "import yaml, jsonschema; jsonschema.Draft202012Validator").Run(); err != nil {
		if os.Getenv("WYEGATE_CI") == "1" {
			t.Fatal("python3 with yaml and jsonschema (2020-12) is not here, and CI must have it")
		}
		t.Skip("python3 with yaml and jsonschema (2020-12) is not here")
	}
	dir := t.TempDir()
	run := func(schema []byte, globs ...string) map[string]string {
		file := filepath.Join(dir, "schema.json")
		if err := os.WriteFile(file, schema, 0o644); err != nil {
			t.Fatal(err)
		}
		args := []string{"-c", validator, file}
		for _, g := range globs {
			list, _ := filepath.Glob(filepath.Join("..", "testdata", "config", g))
			args = append(args, list...)
		}
		out, err := exec.Command("python3", args...).Output()
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]string{}
		for line := range strings.Lines(string(out)) {
			name, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			found[filepath.Base(name)] = text
		}
		return found
	}
	for name, text := range run(Schema(), "good/*.yaml") {
		if text != "" && name != "as-written.yaml" { // another YAML reader sees null where a name is meant
			t.Errorf("good/%s is refused: %s", name, text)
		}
	}
	for name, text := range run(TestSchema(), "tests/good/*.yaml") {
		if text != "" {
			t.Errorf("tests/good/%s is refused: %s", name, text)
		}
	}
	fsys, refused := fixtureFS(t), 0
	broken := run(Schema(), "bad/*.yaml")
	all, _ := fs.Glob(fsys, "bad/*.yaml")
	for _, name := range all {
		if !structural(fsys[name].Data) {
			continue
		}
		refused++
		if broken[filepath.Base(name)] == "" {
			t.Errorf("%s is accepted", name)
		}
	}
	if refused < 25 {
		t.Errorf("only %d broken files are structural", refused)
	}
}

// structural says that a fixture has a finding that a schema can know, too: unknown keys, shapes, words, units. What
// is counted, or needed beside a certain word, is beyond ours.
func structural(data []byte) bool {
	for _, code := range []string{"WG005", "WG006", "WG007", "WG008", "WG013", "WG014"} {
		if bytes.Contains(data, []byte(": "+code+"\n")) && !bytes.Contains(data, []byte("{name: n1}, {name: n2}")) &&
			!bytes.Contains(data, []byte("client_certificates: required")) {
			return true
		}
	}
	return false
}
