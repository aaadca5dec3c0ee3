package dcr

import (
	"bytes"
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"
)

// source is a rule file as UTF-8 text, with the way back from an offset to a line and a column. The text is recoded
// before anything is parsed, one character for one character, so places are those of the file as written.
type source struct {
	name  string
	text  []byte
	lines []int // offset of the first octet of each line
}

// place is a line and a column, both from 1.
type place struct{ line, col int }

// at gives the place of the character at an offset.
func (s *source) at(off int) place {
	off = min(max(off, 0), len(s.text))
	i := sort.SearchInts(s.lines, off+1) - 1
	return place{i + 1, utf8.RuneCount(s.text[s.lines[i]:off]) + 1}
}

func newSource(name string, text []byte) *source {
	s := &source{name: name, text: text, lines: []int{0}}
	for i, c := range text {
		if c == '\n' {
			s.lines = append(s.lines, i+1)
		}
	}
	return s
}

// findings collects the problems of one file.
type findings struct {
	src  *source
	list []Problem
}

// add notes a finding at an offset. An element with a dcr:ignore comment for the code keeps it quiet, unless it is an
// error.
func (f *findings) add(code string, off int, el *element, suggestion, format string, args ...any) {
	p := f.src.at(off)
	sev := severityOf(code)
	path := ""
	if el != nil {
		if sev != Error && el.ignores(code) {
			return
		}
		path = el.path
	}
	f.list = append(f.list, Problem{
		File: f.src.name, Line: p.line, Col: p.col, Severity: sev, Code: code, Text: fmt.Sprintf(format, args...),
		Path: path, Suggestion: suggestion,
	})
}

var bom = []byte("\xEF\xBB\xBF")

// encodings that a rule file may declare (section 1.2).
var encodings = []string{"UTF-8", "US-ASCII", "ISO-8859-1", "windows-1252"}

// recode turns a file into UTF-8 text. The offset in an error is one of the text it returns.
func recode(name string, data []byte) (*source, []Problem) {
	if len(data) > maxFile {
		f := findings{src: newSource(name, nil)}
		f.add("DCR100", 0, nil, "", "the file has %d octets; the limit is %d", len(data), maxFile)
		return f.src, f.list
	}
	body, marked := bytes.CutPrefix(data, bom)
	f := findings{}
	if bytes.HasPrefix(body, []byte("\xFE\xFF")) || bytes.HasPrefix(body, []byte("\xFF\xFE")) {
		f.src = newSource(name, nil)
		f.add("DCR102", 0, nil, "", "the file begins as UTF-16; expected UTF-8, US-ASCII, ISO-8859-1 or windows-1252")
		return f.src, f.list
	}
	enc, encAt := declaredEncoding(body)
	lower := strings.ToLower(enc)
	if marked && lower != "utf-8" {
		f.src = newSource(name, body)
		f.add("DCR102", encAt, nil, "UTF-8", "the file begins with the mark of UTF-8 and declares %q", enc)
		return f.src, f.list
	}
	var text []byte
	bad := -1
	switch lower {
	case "utf-8":
		text, bad = body, badUTF8(body)
	case "us-ascii":
		text, bad = body, bytes.IndexFunc(body, func(r rune) bool { return r >= 0x80 })
	case "iso-8859-1":
		text = latin1(body)
	case "windows-1252":
		text, bad = windows1252(body)
	default:
		f.src = newSource(name, body)
		s := nearest(enc, encodings)
		f.add("DCR102", encAt, nil, s, "encoding %q is not supported; expected UTF-8, US-ASCII, ISO-8859-1 or windows-1252%s", enc, didYouMean(s))
		return f.src, f.list
	}
	f.src = newSource(name, text)
	if bad >= 0 {
		f.add("DCR102", bad, nil, "", "octet %#02x does not fit the encoding %s", octetAt(body, text, bad, lower), enc)
	}
	return f.src, f.list
}

// octetAt finds the octet of the file that stands at an offset of the text.
func octetAt(body, text []byte, off int, enc string) byte {
	if enc == "windows-1252" {
		return body[utf8.RuneCount(text[:off])]
	}
	return body[off]
}

// declaredEncoding reads the encoding of the XML declaration; without one the file is UTF-8. Only ASCII is looked at,
// which all encodings of the list share.
func declaredEncoding(b []byte) (enc string, at int) {
	if !bytes.HasPrefix(b, []byte("<?xml")) {
		return "UTF-8", 0
	}
	end := bytes.Index(b, []byte("?>"))
	if end < 0 {
		return "UTF-8", 0
	}
	i := bytes.Index(b[:end], []byte("encoding"))
	if i < 0 {
		return "UTF-8", 0
	}
	i += len("encoding")
	for i < end && (b[i] == ' ' || b[i] == '\t' || b[i] == '=' || b[i] == '\r' || b[i] == '\n') {
		i++
	}
	if i >= end || b[i] != '"' && b[i] != '\'' {
		return "UTF-8", 0
	}
	n := bytes.IndexByte(b[i+1:end], b[i])
	if n < 0 {
		return "UTF-8", 0
	}
	return string(b[i+1 : i+1+n]), i + 1
}

func badUTF8(b []byte) int {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

func latin1(b []byte) []byte {
	out := make([]byte, 0, len(b)+len(b)/8)
	for _, c := range b {
		out = utf8.AppendRune(out, rune(c))
	}
	return out
}

// cp1252 is what windows-1252 has at 0x80 to 0x9F; 0 marks the five octets it leaves open.
var cp1252 = [32]rune{
	0x20AC, 0, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0, 0x017D, 0,
	0, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0, 0x017E, 0x0178,
}

func windows1252(b []byte) (out []byte, bad int) {
	out, bad = make([]byte, 0, len(b)+len(b)/8), -1
	for _, c := range b {
		r := rune(c)
		if c >= 0x80 && c < 0xA0 {
			if r = cp1252[c-0x80]; r == 0 {
				if bad < 0 {
					bad = len(out)
				}
				r = utf8.RuneError
			}
		}
		out = utf8.AppendRune(out, r)
	}
	return out, bad
}
