package base

import (
	"fmt"
	"strings"

	godiam "github.com/fiorix/go-diameter/v4/diam"
	"github.com/fiorix/go-diameter/v4/diam/dict"

	"github.com/wyegate/wyegate/internal/diam"
)

// CommandName is a command as a person reads it: "AA-Request", "Credit-Control-Answer"; "command 999 request" for one
// that no dictionary names.
func CommandName(h diam.Header) string {
	kind := "Answer"
	if h.IsRequest() {
		kind = "Request"
	}
	c, err := dict.Default.FindCommand(h.App, h.Command)
	if err != nil && h.Command == diam.CommandAA {
		c, err = dict.Default.FindCommand(1, h.Command) // AA belongs to NASREQ and to Rx, not to the base
	}
	if err != nil && h.Command == diam.CommandCreditControl {
		c, err = dict.Default.FindCommand(4, h.Command)
	}
	if err != nil {
		return fmt.Sprintf("command %d %s", h.Command, strings.ToLower(kind))
	}
	return c.Name + "-" + kind
}

// AppTitle is an application with its number: "Rx (16777236)"; the number alone for one without a name.
func AppTitle(id uint32) string {
	if id == diam.AppRelay {
		return fmt.Sprintf("Relay (%d)", id)
	}
	if name, ok := diam.AppName(id); ok {
		return fmt.Sprintf("%s%s (%d)", strings.ToUpper(name[:1]), name[1:], id)
	}
	if a, err := dict.Default.App(id); err == nil && a.Name != "" {
		return fmt.Sprintf("%s (%d)", a.Name, id)
	}
	return fmt.Sprint(id)
}

// AVPName is the name of an AVP in the dictionary of an application; ok is false where none names it. An AVP of a vendor
// is never given the name of the base AVP of the same code.
func AVPName(app, code, vendor uint32) (name string, ok bool) {
	find := vendor
	if vendor == 0 {
		find = dict.UndefinedVendorID
	}
	a, err := dict.Default.FindAVPWithVendor(app, code, find)
	if err != nil || a.VendorID != vendor {
		return "", false
	}
	return strings.TrimSpace(a.Name), true // four names of the dictionaries end in a blank
}

// Describe decodes a whole message for a person to read, with the names of the dictionaries. It walks every AVP of every
// group that the dictionaries know first, and decodes under recover: malformed bytes make go-diameter panic (diameter.md
// 0.1 rule 2). Error: diam.ErrAVPLength, or what the decoder says.
func Describe(msg []byte) (text string, err error) {
	h, err := diam.ParseHeader(msg, len(msg))
	if err != nil {
		return "", err
	}
	if err := checkGroups(h.App, msg[diam.HeaderLen:h.Len], 0); err != nil {
		return "", err
	}
	defer func() {
		if r := recover(); r != nil {
			text, err = "", fmt.Errorf("base: decoder gave up: %v", r)
		}
	}()
	m, err := godiam.ReadMessage(strings.NewReader(string(msg[:h.Len])), dict.Default)
	if err != nil {
		return "", fmt.Errorf("base: %w", err)
	}
	return m.String(), nil
}

// maxDepth bounds the nesting that is followed.
const maxDepth = 16

func checkGroups(app uint32, avps []byte, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("base: groups nested deeper than %d", maxDepth)
	}
	w := diam.Walk(avps)
	for {
		a, ok := w.Next()
		if !ok {
			return w.Err()
		}
		d, err := dict.Default.FindAVPWithVendor(app, a.Code, vendorOf(a))
		if err == nil && d.Data.TypeName == "Grouped" {
			if err := checkGroups(app, a.Data, depth+1); err != nil {
				return err
			}
		}
	}
}

func vendorOf(a diam.AVP) uint32 {
	if a.Vendor == 0 {
		return dict.UndefinedVendorID
	}
	return a.Vendor
}
