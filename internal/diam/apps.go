package diam

import (
	"slices"
	"strconv"
	"strings"
)

// Vendor3GPP is the vendor of the applications and AVPs of 3GPP.
const Vendor3GPP uint32 = 10415

// firstVendorApp is the first application id that a vendor owns (RFC 6733 11.3); those of 3GPP are in that range.
const firstVendorApp = 0x01000000

// appNames are the words for applications in the configuration, in labels and in explain; the order is that of errors.
var appNames = []struct {
	name string
	id   uint32
}{
	{"relay", AppRelay},
	{"gx", AppGx},
	{"rx", AppRx},
	{"base", AppBase},
	{"nasreq", 1},
	{"accounting", 3},
	{"gy", 4},
	{"cx", 16777216},
	{"sh", 16777217},
	{"sta", 16777250},
	{"s6a", 16777251},
	{"s13", 16777252},
	{"swm", 16777264},
	{"swx", 16777265},
	{"gxx", AppGxx},
	{"s9", AppS9},
	{"s6b", 16777272},
	{"sy", 16777302},
	{"sd", 16777303},
}

// AppNames lists the words that ParseApp knows, the most used first.
func AppNames() []string {
	out := make([]string, len(appNames))
	for i, a := range appNames {
		out[i] = a.name
	}
	return out
}

// ParseApp reads an application: one of AppNames in any case, or a number up to 2^32-1.
func ParseApp(word string) (id uint32, ok bool) {
	word = strings.ToLower(word)
	for _, a := range appNames {
		if a.name == word {
			return a.id, true
		}
	}
	n, err := strconv.ParseUint(word, 10, 32)
	return uint32(n), err == nil
}

// AppName is the word for an application; ok is false for one without a word of its own.
func AppName(id uint32) (name string, ok bool) {
	for _, a := range appNames {
		if a.id == id {
			return a.name, true
		}
	}
	return "", false
}

// AppVendor is the vendor that goes with an application in Vendor-Specific-Application-Id; 0: none.
func AppVendor(id uint32) uint32 {
	if id >= firstVendorApp && id != AppRelay {
		return Vendor3GPP
	}
	return 0
}

// CommonApps are the applications that both sides have, in the order of ours: what one names for itself the other
// shares by offering AppRelay (RFC 6733 2.4). Empty: the two have nothing to say to each other (5010).
func CommonApps(ours, theirs []uint32) []uint32 {
	if slices.Contains(ours, AppRelay) {
		return theirs
	}
	if slices.Contains(theirs, AppRelay) {
		return ours
	}
	var out []uint32
	for _, a := range ours {
		if slices.Contains(theirs, a) {
			out = append(out, a)
		}
	}
	return out
}
