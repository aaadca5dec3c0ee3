// Command bench compares wyegate with other programs under one load, on the machine at hand:
//
//	go run ./internal/bench sip -wyegate bin/wyegate
//
// One comparison: a second process of this program, the driver, opens the callers and the servers and stays on the last
// core; every target (the programs compared) is started once on the first core and learns from its configuration where
// the servers are. After one load that warms each up, rounds alternate: in each, every target takes the same load once, and what its processes used of
// the processor is read from their clocks before and after. First a closed loop shows the cost of a message and the
// target's limit, then open loops show the latency: at half of each one's limit, and for all at half of the first one's. What is printed are medians over the rounds and
// ratios of medians to the first target. Figures of one run are comparable, those of different runs are not.
//
// A protocol is one file here (sip.go) with its targets, and one package of ends (sipload) with callers and servers.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// settings are the flags of a comparison.
type settings struct {
	wyegate string
	before  string
	rounds  int
	time    time.Duration
	window  int
	loads   string
	only    string
	dir     string
}

// protocol is what can be compared.
type protocol struct {
	name    string
	unit    string // what the processor time is divided by
	loads   []string
	targets func(s *settings, load string, servers []string) ([]*target, error)
	ends    func() (ends, error)
}

// errMissing says that the program to compare with is not installed here: nothing was measured, and nothing is wrong.
var errMissing = errors.New("not installed (make peers)")

var protocols = []protocol{sipProtocol}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := command(ctx, os.Args[1:], os.Stdout)
	stop()
	if errors.Is(err, errMissing) {
		fmt.Println("skipped:", err)
		return
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// driveVerb is the word by which this program starts itself as the driver.
const driveVerb = "drive"

func command(ctx context.Context, args []string, out io.Writer) error {
	if len(args) > 1 && args[0] == driveVerb {
		p, err := find(args[1])
		if err != nil {
			return err
		}
		e, err := p.ends()
		if err != nil {
			return err
		}
		defer e.Close()
		return drive(ctx, e, os.Stdin, out)
	}
	if len(args) == 0 {
		return errors.New("which protocol? " + names())
	}
	p, err := find(args[0])
	if err != nil {
		return err
	}
	s, err := flags(p, args[1:])
	if err != nil {
		return err
	}
	return compare(ctx, p, s, out)
}

func flags(p *protocol, args []string) (*settings, error) {
	s := &settings{}
	f := flag.NewFlagSet(p.name, flag.ContinueOnError)
	f.StringVar(&s.wyegate, "wyegate", "bin/wyegate", "the `binary` to measure")
	f.StringVar(&s.before, "before", "", "another `binary` of wyegate beside it: that of the commit before a change")
	f.IntVar(&s.rounds, "rounds", 5, "how often every target takes every load")
	f.DurationVar(&s.time, "time", time.Second, "how long one load lasts")
	f.IntVar(&s.window, "window", 64, "units under way in the closed loop")
	f.StringVar(&s.loads, "loads", strings.Join(p.loads, ","), "which loads")
	f.StringVar(&s.only, "only", "", "which targets, by name; empty: all that are installed")
	f.StringVar(&s.dir, "dir", "", "`folder` for configurations and logs that stay; empty: one that goes")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	for l := range strings.SplitSeq(s.loads, ",") {
		if !slices.Contains(p.loads, l) {
			return nil, fmt.Errorf("no load %q: there are %s", l, strings.Join(p.loads, ", "))
		}
	}
	if s.rounds < 1 || s.time <= 0 || s.window < 1 {
		return nil, errors.New("rounds, time and window must be positive")
	}
	return s, nil
}

func find(name string) (*protocol, error) {
	for i := range protocols {
		if protocols[i].name == name {
			return &protocols[i], nil
		}
	}
	return nil, fmt.Errorf("no protocol %q: there is %s", name, names())
}

func names() string {
	var list []string
	for _, p := range protocols {
		list = append(list, p.name)
	}
	return strings.Join(list, ", ")
}
