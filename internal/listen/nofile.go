package listen

import "golang.org/x/sys/unix"

// RaiseFileLimit raises the limit of open descriptors to at least want, as far as the process may, and gives what is in
// force then. The soft limit is set to the hard one in any case; the hard one is raised where the process has the right.
func RaiseFileLimit(want uint64) (got uint64, err error) {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return 0, err
	}
	if l.Max < want {
		more := unix.Rlimit{Cur: want, Max: want}
		if unix.Setrlimit(unix.RLIMIT_NOFILE, &more) == nil {
			return want, nil
		}
	}
	if l.Cur < l.Max {
		l.Cur = l.Max
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
			return 0, err
		}
	}
	return l.Cur, nil
}
