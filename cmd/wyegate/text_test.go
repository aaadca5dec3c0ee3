package main

import (
	"testing"
	"time"
)

func TestAges(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 41 * time.Second: "41s", 372 * time.Second: "6m12s", 5 * time.Minute: "5m", 2 * time.Hour: "2h", 76 * time.Hour: "3d4h", 48 * time.Hour: "2d",
		48*time.Hour + 5*time.Minute: "2d", -time.Second: "0s", time.Hour + 30*time.Second: "1h",
	} {
		if got := age(d); got != want {
			t.Errorf("%v is %s, want %s", d, got, want)
		}
	}
	if got := spaced(76 * time.Hour); got != "3 d 4 h" {
		t.Error(got)
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1204: "1,204", -1204567: "-1,204,567", 1000: "1,000"} {
		if got := thousands(n); got != want {
			t.Errorf("%d is %s", n, got)
		}
	}
}

func TestBars(t *testing.T) {
	for _, c := range []struct {
		total, left int
		closing     bool
		want        string
	}{{10, 10, false, "░░░░"}, {10, 5, false, "██░░"}, {10, 1, false, "███░"}, {10, 0, false, "████"}, {0, 0, false, "████"}, {10, 1, true, "███▒"}, {5, 9, false, "░░░░"}, {1000, 1, false, "███░"}} {
		if got := bar(c.total, c.left, 4, c.closing); got != c.want {
			t.Errorf("%d of %d: %s, want %s", c.left, c.total, got, c.want)
		}
	}
}

// TestYAMLMeansWhatJSONMeant: nothing that YAML would read as something else stands without quotes.
func TestYAMLMeansWhatJSONMeant(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":1,"b":{"c":[],"d":{}},"e":[1,"x",{"f":null,"g":[true]}]}`: "a: 1\nb:\n  c: []\n  d: {}\ne:\n  - 1\n  - x\n  - f: null\n    g:\n      - true\n",
		`[{"a":"0123"},{"a":"no"},{"a":"x: y"},{"a":"l\n2"}]`:           "- a: \"0123\"\n- a: \"no\"\n- a: \"x: y\"\n- a: \"l\\n2\"\n",
		`"1.10"`:                    "\"1.10\"\n",
		`[]`:                        "[]\n",
		`[[1]]`:                     "- - 1\n",
		`{"y":"as1/x.y","on":"-a"}`: "\"y\": as1/x.y\n\"on\": \"-a\"\n",
	} {
		got, err := yaml([]byte(in))
		if err != nil || string(got) != want {
			t.Errorf("%s:\n%s%v, want\n%s", in, got, err, want)
		}
	}
}
