package dcr

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"

	"github.com/beevik/etree"
)

// document is a rule file that was read: the tree of etree, and beside it where everything stands.
type document struct {
	src   *source
	tree  *etree.Document
	root  *element // nil when there is none
	whole bool     // well-formed to its end; otherwise the tree is what stood before the error
}

// read turns the octets of a file into a document. What is wrong with the XML itself is reported; what the elements say
// is the business of the grammar.
func read(name string, data []byte) (*document, *findings) {
	src, problems := recode(name, data)
	f := &findings{src: src, list: problems}
	d := &document{src: src}
	if len(problems) > 0 {
		return d, f
	}
	entities := foreignEntities(f)
	p := positions{src: src, f: f, dec: newDecoder(src.text, entities)}
	d.whole = p.run()
	d.tree = etree.NewDocument()
	// Not ValidateInput: it runs the strict decoder of encoding/xml, as the pass over positions has done, and then refuses
	// a line end or a comment behind the root, which are well-formed.
	d.tree.ReadSettings = etree.ReadSettings{
		MaxDepth: maxDepth, PreserveCData: true, PreserveDuplicateAttrs: true, Entity: entities,
	}
	text := src.text
	if !d.whole {
		text = p.closed()
	}
	if err := d.tree.ReadFromBytes(text); err != nil {
		if d.whole { // nothing that the pass over positions let through is expected here
			f.add("DCR101", 0, nil, "", "not well-formed: %s", err)
		}
		d.tree, d.whole = etree.NewDocument(), false
		return d, f
	}
	if r := d.tree.Root(); r != nil && len(p.elements) > 0 {
		rest := p.elements
		d.root = join(r, nil, &rest)
	}
	return d, f
}

func newDecoder(text []byte, entities map[string]string) *xml.Decoder {
	dec := xml.NewDecoder(bytes.NewReader(text))
	dec.Entity = entities
	dec.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil } // recoded already
	return dec
}

// positions is the pass that finds where elements, attributes and texts stand. encoding/xml gives the end of a token
// only, so the offset is taken before each.
type positions struct {
	src      *source
	f        *findings
	dec      *xml.Decoder
	elements []*element // in the order of their start tags
	open     []*element
	good     int // end of the last token that was well-formed
	seenRoot bool
	doctypes int
}

// run reads to the end of the file or to the first error that ends the reading; it reports whether all is well-formed.
func (p *positions) run() bool {
	for {
		start := int(p.dec.InputOffset())
		tok, err := p.dec.Token()
		if errors.Is(err, io.EOF) {
			if !p.seenRoot {
				p.f.add("DCR101", len(p.src.text), nil, "", "not well-formed: the file holds no element")
				return false
			}
			return true
		}
		if err != nil {
			p.syntax(start, err)
			return false
		}
		if !p.token(tok, start, int(p.dec.InputOffset())) {
			return false
		}
		p.good = int(p.dec.InputOffset())
	}
}

func (p *positions) token(tok xml.Token, start, end int) bool {
	bad := func(off int, text string) bool {
		p.f.add("DCR101", off, nil, "", "not well-formed: %s", text)
		return false
	}
	switch t := tok.(type) {
	case xml.StartElement:
		switch {
		case len(p.open) == 0 && p.seenRoot:
			return bad(start, "a second root element")
		case len(p.open) == maxDepth:
			p.f.add("DCR113", start, nil, "", "elements are nested deeper than %d", maxDepth)
			return false
		case len(p.elements) == maxElements:
			p.f.add("DCR113", start, nil, "", "the file has more than %d elements", maxElements)
			return false
		}
		p.seenRoot = true
		el := startTag(p.src.text, start)
		p.elements = append(p.elements, el)
		p.open = append(p.open, el)
	case xml.EndElement:
		el := p.open[len(p.open)-1]
		el.closed = true
		p.open = p.open[:len(p.open)-1]
	case xml.CharData:
		if len(p.open) > 0 {
			el := p.open[len(p.open)-1]
			el.text = append(el.text, chunk{start, end})
		} else if i := firstInk(p.src.text[start:end]); i >= 0 {
			return bad(start+i, "text outside of the root element")
		}
	case xml.ProcInst:
		if strings.EqualFold(t.Target, "xml") && start != 0 {
			return bad(start, "an XML declaration that is not at the beginning")
		}
	case xml.Directive:
		return p.directive(t, start)
	}
	return true
}

// directive is a DOCTYPE, once and before the root; it is looked at and never followed.
func (p *positions) directive(t xml.Directive, start int) bool {
	word, _, _ := strings.Cut(strings.TrimSpace(string(t)), " ")
	switch {
	case strings.HasPrefix(word, "ENTITY"):
		p.f.add("DCR103", start, nil, "", "entity declarations are not accepted")
		return true
	case !strings.HasPrefix(string(t), "DOCTYPE") || p.seenRoot || p.doctypes > 0:
		p.f.add("DCR101", start, nil, "", "not well-formed: a declaration that may not stand here")
		return false
	}
	p.doctypes++
	dt := parseDoctype(p.src.text, start)
	switch {
	case dt.subset >= 0:
		p.f.add("DCR103", dt.subset, nil, "", "an internal subset is not accepted")
	case !dt.known():
		p.f.add("DCR114", start, nil, "", "unknown DOCTYPE; it is ignored")
	}
	return true
}

// syntax reports the error that ends the reading. A wrong end tag is shown where it begins, anything else where the
// reader stopped.
func (p *positions) syntax(start int, err error) {
	text := err.Error()
	if se, ok := errors.AsType[*xml.SyntaxError](err); ok {
		text = se.Msg
	}
	off := int(p.dec.InputOffset())
	if strings.Contains(text, "closed by") || strings.Contains(text, "end element") {
		off = start
	} else if off > start && text != "unexpected EOF" {
		off-- // the reader has taken the character that is wrong
		for off > start && p.src.text[off]&0xC0 == 0x80 {
			off--
		}
	}
	p.f.add("DCR101", off, nil, "", "not well-formed: %s", text)
}

// closed gives the text up to the error with the end tags it lacks, so that what stands before can be checked.
func (p *positions) closed() []byte {
	out := bytes.Clone(p.src.text[:p.good])
	for i := len(p.open) - 1; i >= 0; i-- {
		out = append(append(append(out, "</"...), p.open[i].name...), '>')
	}
	return out
}

// foreignEntities reports references to entities that XML does not bring along, and gives them an empty text so that
// the reading goes on.
func foreignEntities(f *findings) map[string]string {
	known := map[string]string{}
	text := f.src.text
	for i := 0; i < len(text); {
		switch {
		case bytes.HasPrefix(text[i:], []byte("<!--")):
			i = skipTo(text, i+4, "-->")
		case bytes.HasPrefix(text[i:], []byte("<![CDATA[")):
			i = skipTo(text, i+9, "]]>")
		case bytes.HasPrefix(text[i:], []byte("<?")):
			i = skipTo(text, i+2, "?>")
		case bytes.HasPrefix(text[i:], []byte("<!")):
			i = endOfDirective(text, i)
		case text[i] == '&':
			n := 1
			for i+n < len(text) && isNameByte(text[i+n]) {
				n++
			}
			if name := string(text[i+1 : i+n]); name != "" && i+n < len(text) && text[i+n] == ';' {
				switch name {
				case "lt", "gt", "amp", "quot", "apos":
				default:
					f.add("DCR103", i, nil, "", "reference to the entity %q; only those of XML and character references are accepted", name)
					known[name] = ""
				}
			}
			i += n
		default:
			i++
		}
	}
	return known
}

func skipTo(b []byte, from int, what string) int {
	if i := bytes.Index(b[min(from, len(b)):], []byte(what)); i >= 0 {
		return from + i + len(what)
	}
	return len(b)
}

// endOfDirective finds the '>' of a <!…>, past quotes and an internal subset.
func endOfDirective(b []byte, i int) int {
	depth, quote := 0, byte(0)
	for ; i < len(b); i++ {
		switch c := b[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '<':
			depth++
		case c == '>':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(b)
}

func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.' || c == ':' || c >= 0x80
}

// firstInk is the place of the first octet that is not white space of XML; -1 when there is none.
func firstInk(b []byte) int {
	return bytes.IndexFunc(b, func(r rune) bool { return !isSpace(byte(min(r, 0xFF))) })
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
