package httpproxy

import (
	"bytes"
	"strconv"

	"github.com/wyegate/wyegate/internal/http1"
)

// maxPasses is how often a request may show our pseudonym (HH-2).
const maxPasses = 5

// loops counts our pseudonym in all Via lines.
func (s *Service) loops(h *http1.Head) bool {
	if s.Via == "" || h.Count(http1.Via) == 0 {
		return false
	}
	passes := 0
	for i := range h.Fields {
		f := &h.Fields[i]
		if f.ID != http1.Via {
			continue
		}
		for rest := h.ValueOf(f); len(rest) > 0; {
			var item []byte
			item, rest = http1.NextItem(rest)
			if sp := bytes.IndexByte(item, ' '); sp >= 0 && isName(bytes.TrimLeft(item[sp:], " \t"), s.Via) {
				passes++
			}
		}
	}
	return passes > maxPasses
}

// isName says whether received-by is the pseudonym; a comment may follow.
func isName(by []byte, pseudonym string) bool {
	if sp := bytes.IndexAny(by, " \t"); sp >= 0 {
		by = by[:sp]
	}
	return string(by) == pseudonym
}

// appendVia names us, with the version in which the message came to us (HH-2).
func appendVia(dst []byte, http2 bool, minor uint8, pseudonym string) []byte {
	switch {
	case pseudonym == "":
		return dst
	case http2:
		dst = append(dst, "Via: 2.0 "...)
	default:
		dst = append(append(dst, "Via: 1."...), '0'+minor, ' ')
	}
	return append(append(dst, pseudonym...), "\r\n"...)
}

// appendMaxForwards takes one hop off an OPTIONS request. What is no number goes on as it came.
func (v *View) lowerMaxForwards() (left int, ok bool) {
	if !v.Is("OPTIONS") || v.Head.Count(http1.MaxForwards) != 1 {
		return 0, false
	}
	n, valid := http1.ParseLength(v.Head.Value(http1.MaxForwards))
	if !valid || n == 0 || n > 255 {
		return 0, false
	}
	v.Head.CutAll(http1.MaxForwards, http1.CutOwn)
	return int(n - 1), true
}

func appendMaxForwards(dst []byte, left int) []byte {
	return append(strconv.AppendInt(append(dst, "Max-Forwards: "...), int64(left), 10), "\r\n"...)
}
