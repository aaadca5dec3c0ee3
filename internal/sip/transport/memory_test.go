package transport

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wyegate/wyegate/internal/listen"
)

// An idle client costs less than 12 KiB of this process, its two goroutines included: the slope over many connections,
// each of which has sent a message and got an answer.
func TestMemoryPerIdleClient(t *testing.T) {
	const step = 1000
	if n, err := listen.RaiseFileLimit(5 * step); err != nil || n < 5*step {
		t.Fatalf("%d descriptors, %v: the test needs %d", n, err, 5*step)
	}
	r := newRig(t, Config{Node: 1, Workers: 1})
	l := r.open(t, "127.0.0.1:0", 0, ListenerConfig{Name: "tcp", Kind: TCP})[0]
	r.work(t, func(o *Out, g got) {
		if g.event == nil {
			_ = o.OnFlow(g.msg.Flow, []byte("SIP/2.0 200 OK\r\n\r\n"))
		}
	})
	var fds []int
	defer func() {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
	}()
	q, b := []byte(request("REGISTER", "x", 900)), make([]byte, 100)
	grow := func() uint64 {
		for range step {
			// Bare descriptors: the clients' side must not count.
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			fds = append(fds, fd)
			if err := unix.Connect(fd, &unix.SockaddrInet4{Port: int(l.Addr.Port()), Addr: l.Addr.Addr().As4()}); err != nil {
				t.Fatal(err)
			}
			if _, err := unix.Write(fd, q); err != nil {
				t.Fatal(err)
			}
			if _, err := unix.Read(fd, b); err != nil {
				t.Fatal(err)
			}
		}
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}
	first := grow()
	per := (grow() - first) / step
	t.Logf("%d octets per idle client", per)
	if per > 12<<10*stackFactor {
		t.Errorf("%d octets per idle client", per)
	}
}
