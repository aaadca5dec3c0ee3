package engine_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wyegate/wyegate/admin"
)

// operations.md 4.1, 4.3: a state file that the disk has damaged is set aside and told; the node serves, and what the
// other files say holds.
func TestDamagedStateIsSetAside(t *testing.T) {
	e, stop := start(t, 2)
	e.resume = true
	e.write("wyegate.yaml", e.yaml("", 0, 1, 2))
	if err := e.Reload("test"); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Change(t.Context(), admin.Change{Pool: "appservers", Server: "as2", AdminState: "drain"}); err != nil {
		t.Fatal(err)
	}
	damage := func(name string, with []byte) {
		t.Helper()
		stop()
		if err := os.WriteFile(filepath.Join(e.dir, "state", name), with, 0o600); err != nil {
			t.Fatal(err)
		}
		stop = e.run()
		w := e.Status().Warnings
		if len(w) != 1 || w[0].Code != "state_damaged" || !strings.Contains(w[0].Text, name) {
			t.Errorf("%s: warnings %+v", name, w)
		}
		if data, err := os.ReadFile(filepath.Join(e.dir, "state", "damaged-"+name)); err != nil || string(data) != string(with) {
			t.Errorf("%s was not kept for whoever looks at it: %v", name, err)
		}
		if code, _ := e.web("/?conf=1"); code != 200 {
			t.Errorf("%s: traffic gets %d", name, code)
		}
	}
	drained := func() bool {
		for _, s := range e.Servers() {
			if s.Server == "as2" {
				return s.AdminState.Effective == "drain"
			}
		}
		return false
	}
	damage(fmt.Sprintf("generation-%020d.json", 1), nil)
	if h := e.History(); len(h) != 1 || h[0].Generation != 2 || e.Status().Generation != 2 {
		t.Errorf("history %+v, generation %d", h, e.Status().Generation)
	}
	if !drained() {
		t.Error("the override went with a generation")
	}
	damage(fmt.Sprintf("generation-%020d.json", 2), []byte(`{"number": 2, "dig`))
	if !drained() {
		t.Error("the override went with the last generation")
	}
	damage("overrides.json", []byte{0, 0, 0, 0})
	if drained() {
		t.Error("an override was made up")
	}
}
