package dcr

import "strings"

// The ids of the vendor's DTD (section 1.1).
const (
	vendorPublicID = "-//Sun Microsystems Inc.//DTD Sailfin 1.0//EN"
	vendorSystemID = "http://www.sun.com/software/appserver/dtds/sun-data-centric-rule_1_0.dtd"
)

// doctype is what a DOCTYPE declaration says.
type doctype struct {
	name, public, system string
	subset               int // offset of the '[' of an internal subset; -1 without one
}

// known reports whether the declaration names the vendor's DTD or ours.
func (d doctype) known() bool {
	return d.name == "user-centric-rules" &&
		(d.public == vendorPublicID || d.system == vendorSystemID || strings.HasSuffix(d.system, "dcr.dtd"))
}

// parseDoctype reads the declaration that begins at an offset of the text.
func parseDoctype(text []byte, at int) doctype {
	d := doctype{subset: -1}
	end := endOfDirective(text, at)
	var words []string
	i := at + len("<!DOCTYPE")
	for i < end-1 {
		switch c := text[i]; {
		case isSpace(c):
			i++
		case c == '[':
			d.subset = i
			i = end
		case c == '"' || c == '\'':
			n := strings.IndexByte(string(text[i+1:end]), c)
			if n < 0 {
				return d
			}
			words = append(words, string(text[i+1:i+1+n]))
			i += n + 2
		default:
			n := i
			for n < end-1 && !isSpace(text[n]) && text[n] != '[' && text[n] != '"' && text[n] != '\'' {
				n++
			}
			words = append(words, string(text[i:n]))
			i = n
		}
	}
	if len(words) > 0 {
		d.name = words[0]
	}
	switch {
	case len(words) >= 3 && words[1] == "SYSTEM":
		d.system = words[2]
	case len(words) >= 3 && words[1] == "PUBLIC":
		d.public = words[2]
		if len(words) >= 4 {
			d.system = words[3]
		}
	}
	return d
}
