package sip

import (
	"strings"
	"testing"
)

func TestHeaderByName(t *testing.T) {
	seen := map[uint8]HeaderID{}
	for id := HeaderOther + 1; id < numHeaders; id++ {
		long := id.String()
		if long == "" {
			t.Fatalf("header %d has no name", id)
		}
		if len(long) > longestName {
			t.Errorf("%s is longer than longestName", long)
		}
		slot := slotOf([]byte(long))
		if other, taken := seen[slot]; taken {
			t.Errorf("%s and %s share slot %d", id, other, slot)
		}
		seen[slot] = id
		for _, s := range []string{long, strings.ToUpper(long), strings.ToLower(long)} {
			if got := HeaderByName([]byte(s)); got != id {
				t.Errorf("%q is %d, want %d", s, got, id)
			}
		}
		if got := HeaderByName([]byte(long + "x")); got != HeaderOther {
			t.Errorf("%sx is taken for %s", long, got)
		}
	}
	// dcr.md 3.3
	for c, long := range map[string]string{
		"a": "Accept-Contact", "b": "Referred-By", "c": "Content-Type", "d": "Request-Disposition", "e": "Content-Encoding",
		"f": "From", "i": "Call-ID", "j": "Reject-Contact", "k": "Supported", "l": "Content-Length", "m": "Contact",
		"o": "Event", "r": "Refer-To", "s": "Subject", "t": "To", "u": "Allow-Events", "v": "Via", "x": "Session-Expires",
		"y": "Identity",
	} {
		if HeaderByName([]byte(c)).String() != long || HeaderByName([]byte(strings.ToUpper(c))).String() != long {
			t.Errorf("compact form %q is not %s", c, long)
		}
	}
	for _, s := range []string{"", "z", "Vi", "Viaa", "Call\rID", "X-Custom", "\x00"} {
		if got := HeaderByName([]byte(s)); got != HeaderOther {
			t.Errorf("%q is taken for %s", s, got)
		}
	}
}
