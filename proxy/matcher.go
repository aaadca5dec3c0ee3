package proxy

import (
	"strings"
)

// Pattern is one line of an application's match: a host (exact, "*.suffix" or empty for every host) and a path prefix
// of whole segments (empty for every path).
type Pattern struct {
	Host string
	Path string
}

// Matcher finds the application of an initial request among those a listener offers (operations.md 3.3): exact host
// before the longest suffix before none, then the longest path. It is immutable.
type Matcher struct {
	exact    map[string][]entry
	suffixes []suffix // longest first
	any      []entry
}

type entry struct {
	path   string
	target *Target
}

type suffix struct {
	dot     string // ".carrier.example.net"
	entries []entry
}

// Add puts a pattern into the matcher while it is built. It reports the target that matches the same requests equally,
// if there is one.
func (m *Matcher) Add(p Pattern, t *Target) (clash *Target) {
	host := strings.ToLower(p.Host)
	switch {
	case host == "" || host == "*":
		m.any, clash = insert(m.any, p.Path, t)
	case strings.HasPrefix(host, "*."):
		i := 0
		for ; i < len(m.suffixes) && len(m.suffixes[i].dot) >= len(host)-1; i++ {
			if m.suffixes[i].dot == host[1:] {
				m.suffixes[i].entries, clash = insert(m.suffixes[i].entries, p.Path, t)
				return clash
			}
		}
		m.suffixes = append(m.suffixes, suffix{})
		copy(m.suffixes[i+1:], m.suffixes[i:])
		m.suffixes[i] = suffix{dot: host[1:], entries: []entry{{p.Path, t}}}
	default:
		if m.exact == nil {
			m.exact = map[string][]entry{}
		}
		m.exact[host], clash = insert(m.exact[host], p.Path, t)
	}
	return clash
}

// insert keeps the longest path first.
func insert(list []entry, path string, t *Target) ([]entry, *Target) {
	i := 0
	for ; i < len(list) && len(list[i].path) >= len(path); i++ {
		if list[i].path == path {
			return list, list[i].target
		}
	}
	list = append(list, entry{})
	copy(list[i+1:], list[i:])
	list[i] = entry{path, t}
	return list, nil
}

// Match finds the target for a host in lower case without port (empty: the message has none) and a path. accept says
// which kinds of application may take the message.
func (m *Matcher) Match(host, path []byte, accept func(*Target) bool) *Target {
	return m.match(host, path, false, accept)
}

// MatchHost finds the target by host alone: path prefixes concern HTTP only, so a call belongs to an application
// whatever its path. Of several with one host the longest path goes first.
func (m *Matcher) MatchHost(host []byte, accept func(*Target) bool) *Target {
	return m.match(host, nil, true, accept)
}

func (m *Matcher) match(host, path []byte, anyPath bool, accept func(*Target) bool) *Target {
	if len(host) > 0 {
		if t := find(m.exact[string(host)], path, anyPath, accept); t != nil {
			return t
		}
		for i := range m.suffixes {
			s := &m.suffixes[i]
			if len(host) > len(s.dot) && string(host[len(host)-len(s.dot):]) == s.dot {
				if t := find(s.entries, path, anyPath, accept); t != nil {
					return t
				}
			}
		}
	}
	return find(m.any, path, anyPath, accept)
}

func find(list []entry, path []byte, anyPath bool, accept func(*Target) bool) *Target {
	for i := range list {
		if (anyPath || list[i].covers(path)) && accept(list[i].target) {
			return list[i].target
		}
	}
	return nil
}

// covers matches whole segments: "/room" covers "/room" and "/room/1", not "/rooms".
func (e *entry) covers(path []byte) bool {
	n := len(e.path)
	if n == 0 {
		return true
	}
	if len(path) < n || string(path[:n]) != e.path {
		return false
	}
	return len(path) == n || e.path[n-1] == '/' || path[n] == '/' || path[n] == ';'
}
