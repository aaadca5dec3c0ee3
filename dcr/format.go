package dcr

import (
	"errors"
	"slices"
	"strings"

	"github.com/beevik/etree"
)

// ErrProgramChanged means that the formatted text would be another program. It is a fault of Format, which then gives
// nothing, so that nothing is written.
var ErrProgramChanged = errors.New("dcr: formatting would change the program")

// Format lays a rule file out anew: two spaces, one order of attributes, UTF-8 declared; comments, DOCTYPE and the order
// of elements are kept, and the text of equal and match is never changed. A file with errors has no layout: then the
// text is nil and the problems say why.
func Format(fileName string, data []byte, o Options) ([]byte, []Problem, error) {
	before, problems := Compile(fileName, data, o)
	if before == nil {
		return nil, problems, nil
	}
	doc, _ := read(fileName, data)
	layoutDocument(doc.tree)
	doc.tree.WriteSettings = etree.WriteSettings{CanonicalText: true, CanonicalAttrVal: true}
	out, err := doc.tree.WriteToBytes()
	if err != nil {
		return nil, problems, err
	}
	if after, _ := Compile(fileName, out, o); after == nil || !after.Same(before) {
		return nil, problems, ErrProgramChanged
	}
	return out, problems, nil
}

// layoutDocument puts everything outside of the root on a line of its own.
func layoutDocument(d *etree.Document) {
	kids := slices.Clone(d.Child)
	clearChildren(&d.Element)
	declare := d.CreateProcInst("xml", `version="1.0" encoding="UTF-8"`)
	d.AddChild(etree.NewText("\n"))
	for _, t := range kids {
		switch c := t.(type) {
		case *etree.CharData:
			continue
		case *etree.ProcInst:
			if c.Target == declare.Target {
				continue
			}
		case *etree.Element:
			layout(c, 0)
		}
		d.AddChild(t)
		d.AddChild(etree.NewText("\n"))
	}
}

func clearChildren(e *etree.Element) {
	for i := len(e.Child) - 1; i >= 0; i-- {
		e.RemoveChildAt(i)
	}
}

// attributeOrder is the one order that fmt writes.
var attributeOrder = []string{"name", "parameter", "return", "prefix"}

// layout indents an element. A condition with nothing but its exist, notexist or match stays on one line.
func layout(e *etree.Element, depth int) {
	slices.SortStableFunc(e.Attr, func(a, b etree.Attr) int {
		return slices.Index(attributeOrder, a.Key) - slices.Index(attributeOrder, b.Key)
	})
	if e.Tag == "equal" || e.Tag == "match" {
		return
	}
	kids := slices.Clone(e.Child)
	clearChildren(e)
	if oneLine(e, kids) {
		for _, t := range kids {
			if c, ok := t.(*etree.Element); ok {
				layout(c, depth)
				e.AddChild(c)
			}
		}
		return
	}
	blank, sameLine := false, false
	for _, t := range kids {
		switch c := t.(type) {
		case *etree.CharData:
			blank = blank || strings.Count(c.Data, "\n") > 1
			sameLine = !strings.Contains(c.Data, "\n")
			continue
		case *etree.Comment:
			if sameLine = sameLine && len(e.Child) > 0; sameLine { // a remark behind an element belongs to its line
				e.AddChild(etree.NewText(" "))
				e.AddChild(c)
				blank = false
				continue
			}
		case *etree.Element:
			layout(c, depth+1)
		}
		breakLine(e, depth+1, blank && len(e.Child) > 0)
		e.AddChild(t)
		blank, sameLine = false, true
	}
	if len(e.Child) > 0 {
		breakLine(e, depth, false)
	}
}

// breakLine starts a new line, behind one blank line where the author had any.
func breakLine(e *etree.Element, depth int, blank bool) {
	text := "\n"
	if blank {
		text = "\n\n"
	}
	e.AddChild(etree.NewText(text + strings.Repeat("  ", depth)))
}

// oneLine reports whether an element holds no more than one element without rules of its own.
func oneLine(e *etree.Element, kids []etree.Token) bool {
	switch e.Tag {
	case "header", "cookie", "request-uri":
	default:
		return false
	}
	for _, t := range kids {
		switch t.(type) {
		case *etree.CharData, *etree.Element:
		default:
			return false
		}
	}
	return true
}
