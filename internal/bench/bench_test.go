package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/wyegate/wyegate/config"
)

// stub are ends that only note what they were told.
type stub struct{ got []order }

func (s *stub) Servers() []string  { return []string{"127.0.0.1:1", "127.0.0.1:2"} }
func (s *stub) Idle(time.Duration) {}
func (s *stub) Close()             {}
func (s *stub) Run(_ context.Context, o order) (outcome, error) {
	s.got = append(s.got, o)
	if o.Load == "odd" {
		return outcome{}, errors.New("no such load")
	}
	return outcome{Count: 6, Rate: o.Rate * 6}, nil
}

func TestDriverObeysUntilOrdersEnd(t *testing.T) {
	var orders, out bytes.Buffer
	enc := json.NewEncoder(&orders)
	for _, o := range []order{{Addr: "a", Load: "call", Rate: 2}, {Load: "odd"}} {
		if err := enc.Encode(o); err != nil {
			t.Fatal(err)
		}
	}
	s := &stub{}
	if err := drive(context.Background(), s, &orders, &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 || lines[0] != `["127.0.0.1:1","127.0.0.1:2"]` {
		t.Fatalf("the driver said %q", lines)
	}
	var res [2]outcome
	for i := range res {
		if err := json.Unmarshal([]byte(lines[i+1]), &res[i]); err != nil {
			t.Fatal(err)
		}
	}
	if res[0].Rate != 12 || res[0].Problem != "" || res[1].Problem != "no such load" || len(s.got) != 2 {
		t.Errorf("%+v of %+v", res, s.got)
	}
}

func TestReportGivesMediansAndRatios(t *testing.T) {
	a, b := &target{name: "theirs"}, &target{name: "ours"}
	of := func(cost, rate float64) sample { return sample{outcome: outcome{Rate: rate, Lost: 1}, cost: cost} }
	got := map[*target][]sample{
		a: {of(8, 100), of(90, 1), of(10, 110), of(10, 120)},
		b: {of(5, 150), of(4, 200), of(6, 990)},
	}
	var out bytes.Buffer
	report(&out, &protocol{name: "sip", unit: "message"}, "title", []*target{a, b}, got)
	lines := strings.Split(out.String(), "\n")
	want := [][]string{
		{"theirs", "10.00", "(8.00-90.00)", "1.00", "105", "1.00"},
		{"ours", "5.00", "(4.00-6.00)", "0.50", "200", "1.90"},
	}
	for i, w := range want {
		if f := strings.Fields(lines[3+i]); strings.Join(f[:6], " ") != strings.Join(w, " ") || f[len(f)-2] != []string{"4", "3"}[i] {
			t.Errorf("line %q, want it to begin with %q", lines[3+i], w)
		}
	}
}

func TestFlagsAreChecked(t *testing.T) {
	for _, args := range [][]string{{"-loads", "options,fax"}, {"-rounds", "0"}, {"-window", "-1"}, {"-time", "0s"}} {
		if _, err := flags(&sipProtocol, args); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
	if err := command(context.Background(), []string{"fax"}, io.Discard); err == nil {
		t.Error("a protocol that nobody knows is accepted")
	}
}

// TestConfigurationsAreGood looks at the configurations before anybody measures with them: every feature that costs
// something is on, and nothing is refused.
func TestConfigurationsAreGood(t *testing.T) {
	files := map[string]string{}
	w, err := wyegateTarget(t.TempDir(), "wyegate", "w", "conf/wyegate-sip.yaml", files, []string{"127.0.0.1:7001", "127.0.0.1:7002"})
	if err != nil {
		t.Fatal(err)
	}
	rules, err := conf.ReadFile("conf/rules.xml")
	if err != nil {
		t.Fatal(err)
	}
	fsys := fstest.MapFS{"wyegate.yaml": {Data: []byte(files["wyegate.yaml"])}, "rules.xml": {Data: rules}}
	c, problems := config.Load(fsys, "wyegate.yaml", config.Options{})
	if c == nil || config.HasErrors(problems) {
		t.Fatalf("%v\n%s", problems, files["wyegate.yaml"])
	}
	if c.Logging.Access.IsZero() || !strings.Contains(files["wyegate.yaml"], w.addr) || strings.Contains(files["wyegate.yaml"], "@") {
		t.Errorf("not everything is on or filled in:\n%s", files["wyegate.yaml"])
	}
}

// TestComparisonRuns compares for a moment, with the binary of this tree: no target loses a message or moves a dialog.
// Times are printed by `make bench`, and asserted nowhere.
func TestComparisonRuns(t *testing.T) {
	if _, err := exec.LookPath("kamailio"); err != nil && !exists("/usr/sbin/kamailio") {
		if os.Getenv("WYEGATE_CI") != "" {
			t.Fatal("needs kamailio, and CI must have it")
		}
		t.Skip("needs kamailio")
	}
	dir := t.TempDir()
	for program, pkg := range map[string]string{"wyegate": "../../cmd/wyegate", "bench": "."} {
		cmd := exec.Command("go", "build", "-o", filepath.Join(dir, program), pkg)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "bench"), "sip", "-wyegate", filepath.Join(dir, "wyegate"),
		"-rounds", "1", "-time", "100ms", "-window", "4", "-loads", "dialog", "-dir", filepath.Join(dir, "run"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	rows := 0
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) < 8 || f[0] != "wyegate" && !strings.HasPrefix(f[0], "kamailio-") {
			continue
		}
		rows++
		if faults := f[len(f)-1]; faults != "0" || f[1] == "NaN" || f[1] == "0.00" {
			t.Errorf("%s", line)
		}
	}
	if rows != 9 {
		t.Errorf("three targets under three loads make %d rows:\n%s", rows, out)
	}
}
