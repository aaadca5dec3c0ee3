package config

import (
	"encoding/json"
	"strings"
	"testing"
)

// The JSON form has the values of the YAML, in its order; what reads like a number only by accident stays a text.
func TestJSON(t *testing.T) {
	const text = "version: 1\nnode:\n  name: \"0123\"\n  note: \"a <b> & \\\"c\\\"\"\nlist: [a, \"on\", 1.10]\nempty: []\ncode: 0123\nflag: true\nquoted: \"true\"\nhost: ${X:-a}\n"
	const want = `{"version":1,"node":{"name":"0123","note":"a <b> & \"c\""},"list":["a","on",1.10],"empty":[],"code":"0123","flag":true,"quoted":"true","host":"${X:-a}"}`
	got, err := JSON([]byte(text))
	if err != nil || string(got) != want {
		t.Errorf("%v\n%s\n%s", err, got, want)
	}
	if _, err := JSON([]byte("a: [")); err == nil || !strings.Contains(err.Error(), "line ") {
		t.Errorf("broken YAML: %v", err)
	}
}

// Every profile with all defaults is JSON that other programs read.
func TestJSONOfProfiles(t *testing.T) {
	for _, name := range Profiles() {
		text, _ := Profile(name)
		cfg := mustLoad(t, files("wyegate.yaml", string(text)), "wyegate.yaml", options())
		out, err := JSON(Show(cfg, true))
		var v map[string]any
		if err != nil || json.Unmarshal(out, &v) != nil || v["version"] != 1.0 || len(v["listeners"].([]any)) == 0 {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
}
