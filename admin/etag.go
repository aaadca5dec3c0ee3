package admin

import (
	"fmt"
	"hash/fnv"
	"strings"
)

// etag names what an operator can change of a server, so that load and health do not make a change of his own fail.
func (s *Server) etag() string {
	over := func(v any, set bool) string {
		if !set {
			return "-"
		}
		return fmt.Sprint(v)
	}
	var state, weight any
	if s.AdminState.Override != nil {
		state = *s.AdminState.Override
	}
	if s.Weight.Override != nil {
		weight = *s.Weight.Override
	}
	parts := []string{
		s.Pool, s.Server, s.AdminState.File, over(state, state != nil), fmt.Sprint(s.Weight.File), over(weight, weight != nil),
	}
	if d := s.Drain; d != nil && d.Deadline != nil {
		parts = append(parts, d.Deadline.UTC().Format("20060102150405"), d.AtDeadline)
	}
	return tag(parts...)
}

// tag is a short name of the parts, without quotes.
func tag(parts ...string) string {
	h := fnv.New64a()
	h.Write([]byte(strings.Join(parts, "\x00")))
	return fmt.Sprintf("%016x", h.Sum64())
}

// matches reads If-Match: a list of quoted tags, or *.
func matches(header, etag string) bool {
	if header == "" {
		return true
	}
	for one := range strings.SplitSeq(header, ",") {
		one = strings.TrimPrefix(strings.TrimSpace(one), "W/")
		if one == "*" || strings.Trim(one, `"`) == etag {
			return true
		}
	}
	return false
}
