package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// target is one program under comparison.
type target struct {
	name    string
	command []string
	addr    string       // where it takes load
	ready   func() error // nil when it serves; asked until then

	cmd *exec.Cmd
}

// startPinned starts a program on one core: a child has the affinity of the thread that made it.
func startPinned(cmd *exec.Cmd, core int) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, want unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return fmt.Errorf("cores: %w", err)
	}
	want.Set(core)
	if err := unix.SchedSetaffinity(0, &want); err != nil {
		return fmt.Errorf("core %d: %w", core, err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err := cmd.Start()
	if back := unix.SchedSetaffinity(0, &before); err == nil && back != nil {
		err = back
	}
	return err
}

// cores are the first and the last core that this process may use.
func cores() (first, last int) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return 0, 0
	}
	for first = 0; !set.IsSet(first); first++ {
	}
	for i := range len(set) * 64 {
		if set.IsSet(i) {
			last = i
		}
	}
	return first, last
}

// start starts the target and waits until it serves.
func (t *target) start(ctx context.Context, dir string, core int) error {
	log, err := os.Create(filepath.Join(dir, t.name+".log"))
	if err != nil {
		return err
	}
	defer log.Close() // the child has its own
	t.cmd = exec.Command(t.command[0], t.command[1:]...)
	t.cmd.Dir, t.cmd.Stdout, t.cmd.Stderr = dir, log, log
	if err := startPinned(t.cmd, core); err != nil {
		t.cmd = nil
		return fmt.Errorf("%s: %w", t.name, err)
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var why error
	for range 200 {
		if why = t.ready(); why == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return fmt.Errorf("%s does not serve (%w); it said:\n%s", t.name, why, tail(log.Name()))
}

func tail(file string) string {
	b, _ := os.ReadFile(file)
	return string(b[max(0, len(b)-2000):])
}

// stop ends the target and what it has started.
func (t *target) stop() {
	if t.cmd == nil {
		return
	}
	group := -t.cmd.Process.Pid
	_ = syscall.Kill(group, syscall.SIGTERM)
	gone := make(chan struct{})
	go func() { _ = t.cmd.Wait(); close(gone) }()
	select {
	case <-gone:
	case <-time.After(3 * time.Second):
		_ = syscall.Kill(group, syscall.SIGKILL)
		<-gone
	}
	t.cmd = nil
}

// usage is what the processes of a target have used.
type usage struct {
	cpu time.Duration
	pss float64 // MiB; a page that several share counts once
}

func (t *target) usage() usage {
	var u usage
	for _, pid := range family(t.cmd.Process.Pid) {
		u.cpu += cpuClock(pid)
		u.pss += pss(pid)
	}
	return u
}

// cpuClock is the processor time of a process, in nanoseconds and with that of its threads that have ended: the clock
// that clock_getcpuclockid(3) names.
func cpuClock(pid int) time.Duration {
	var ts unix.Timespec
	if _, _, e := unix.RawSyscall(unix.SYS_CLOCK_GETTIME, uintptr(^pid<<3|2), uintptr(unsafe.Pointer(&ts)), 0); e != 0 {
		return 0
	}
	return time.Duration(ts.Nano())
}

func pss(pid int) float64 {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "Pss:" {
			n, _ := strconv.ParseFloat(f[1], 64)
			return n / 1024
		}
	}
	return 0
}

// family is a process and all that descend from it.
func family(root int) []int {
	children := map[int][]int{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // it has just ended
		}
		s := string(b)
		pid, _ := strconv.Atoi(s[:strings.IndexByte(s, ' ')])
		rest := strings.Fields(s[strings.LastIndexByte(s, ')')+1:]) // the name may hold anything
		parent, _ := strconv.Atoi(rest[1])
		children[parent] = append(children[parent], pid)
	}
	list := []int{root}
	for i := 0; i < len(list); i++ {
		list = append(list, children[list[i]]...)
	}
	return list
}

// driver is the process that makes load.
type driver struct {
	cmd     *exec.Cmd
	orders  io.WriteCloser
	answers *bufio.Scanner
	servers []string
}

func startDriver(protocol string, core int) (*driver, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	d := &driver{cmd: exec.Command(self, driveVerb, protocol)}
	d.cmd.Stderr = os.Stderr
	if d.orders, err = d.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	d.answers = bufio.NewScanner(out)
	if err := startPinned(d.cmd, core); err != nil {
		return nil, fmt.Errorf("driver: %w", err)
	}
	if err := d.read(&d.servers); err != nil {
		d.stop()
		return nil, err
	}
	return d, nil
}

func (d *driver) read(v any) error {
	if !d.answers.Scan() {
		return fmt.Errorf("driver: it has ended (%w)", io.ErrUnexpectedEOF)
	}
	if err := json.Unmarshal(d.answers.Bytes(), v); err != nil {
		return fmt.Errorf("driver: %w", err)
	}
	return nil
}

// run runs one load.
func (d *driver) run(o order) (outcome, error) {
	var res outcome
	if err := json.NewEncoder(d.orders).Encode(o); err != nil {
		return res, fmt.Errorf("driver: %w", err)
	}
	if err := d.read(&res); err != nil {
		return res, err
	}
	if res.Problem != "" {
		return res, fmt.Errorf("driver: %s", res.Problem)
	}
	return res, nil
}

func (d *driver) stop() {
	d.orders.Close()
	_ = d.cmd.Wait()
}
