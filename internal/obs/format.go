package obs

import (
	"strconv"
	"time"
	"unicode/utf8"
)

// Format is the shape of an access log line.
type Format uint8

// The words of logging.access_format.
const (
	FormatJSON Format = iota
	FormatLine
)

const timeLayout = "2006-01-02T15:04:05.000Z"

// AppendJSON writes one record as one JSON object and a newline (operations.md 8.3). What a transaction does not have
// (a key, a server) is left out; tried, code, disp and ms are always there.
func AppendJSON(dst []byte, r *Record, node string) []byte {
	dst = append(dst, `{"ts":"`...)
	dst = appendTime(dst, r.Start)
	dst = append(dst, `","node":`...)
	dst = appendString(dst, node)
	dst = append(dst, `,"gen":`...)
	dst = strconv.AppendUint(dst, r.Generation, 10)
	dst = jsonText(dst, `,"listener":`, r.Listener)
	dst = jsonText(dst, `,"proto":`, r.Proto.String())
	dst = jsonText(dst, `,"app":`, r.App)
	dst = append(dst, `,"client":"`...)
	dst = appendClient(dst, r)
	dst = append(dst, '"')
	dst = jsonText(dst, `,"method":`, r.Bytes(r.Method))
	dst = jsonText(dst, `,"uri":`, r.Bytes(r.URI))
	if r.Proto == HTTP {
		dst = jsonText(dst, `,"host":`, r.Bytes(r.Host))
		dst = append(dst, `,"bytes_in":`...)
		dst = strconv.AppendInt(dst, r.BytesIn, 10)
		dst = append(dst, `,"bytes_out":`...)
		dst = strconv.AppendInt(dst, r.BytesOut, 10)
	} else {
		dst = jsonText(dst, `,"call_id":`, r.Bytes(r.CallID))
	}
	dst = jsonText(dst, `,"key":`, r.Bytes(r.Key))
	if r.KeyLen > 0 {
		dst = append(dst, `,"key_len":`...)
		dst = strconv.AppendInt(dst, int64(r.KeyLen), 10)
	}
	dst = jsonText(dst, `,"key_source":`, r.KeySource)
	dst = jsonText(dst, `,"rule":`, r.Rule)
	dst = jsonText(dst, `,"server":`, r.Server)
	dst = append(dst, `,"tried":[`...)
	for i, s := range r.Tried[:min(r.NumTried, len(r.Tried))] {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, s)
	}
	dst = append(dst, `],"code":`...)
	dst = strconv.AppendInt(dst, int64(r.Code), 10)
	dst = append(dst, `,"disp":"`...)
	dst = appendDisp(dst, r)
	dst = append(dst, `","ms":{"rules":`...)
	dst = appendMS(dst, r.Rules)
	dst = append(dst, `,"connect":`...)
	dst = appendMS(dst, r.Connect)
	dst = append(dst, `,"first":`...)
	dst = appendMS(dst, r.First)
	dst = append(dst, `,"final":`...)
	dst = appendMS(dst, r.Final)
	return append(dst, '}', '}', '\n')
}

// AppendLine writes one record as one line of fields with blanks between (operations.md 8.3). What a transaction does
// not have is "-" in a place and left out as a name.
func AppendLine(dst []byte, r *Record, node string) []byte {
	dst = appendTime(dst, r.Start)
	dst = place(dst, node)
	dst = append(dst, ' ')
	dst = strconv.AppendUint(dst, r.Generation, 10)
	dst = place(dst, r.Listener)
	dst = place(dst, r.Proto.String())
	dst = append(dst, ' ')
	dst = appendClient(dst, r)
	dst = place(dst, r.App)
	dst = bare(append(dst, '/'), r.Server)
	dst = place(dst, r.Bytes(r.Method))
	dst = place(dst, r.Bytes(r.URI))
	dst = append(dst, ' ')
	dst = strconv.AppendInt(dst, int64(r.Code), 10)
	dst = append(dst, ' ')
	dst = appendDisp(dst, r)
	for i, d := range [...]time.Duration{r.Rules, r.Connect, r.First, r.Final} {
		dst = append(dst, " ///"[i])
		dst = appendMS(dst, d)
	}
	dst = append(dst, ' ')
	dst = strconv.AppendInt(dst, int64(r.NumTried), 10)
	dst = named(dst, " key=", r.Bytes(r.Key))
	if r.KeyLen > 0 {
		dst = append(dst, " key_len="...)
		dst = strconv.AppendInt(dst, int64(r.KeyLen), 10)
	}
	dst = named(dst, " src=", r.KeySource)
	dst = named(dst, " rule=", r.Rule)
	if r.Proto == HTTP {
		dst = named(dst, " host=", r.Bytes(r.Host))
		dst = append(dst, " bytes_in="...)
		dst = strconv.AppendInt(dst, r.BytesIn, 10)
		dst = append(dst, " bytes_out="...)
		dst = strconv.AppendInt(dst, r.BytesOut, 10)
	} else {
		dst = named(dst, " id=", r.Bytes(r.CallID))
	}
	return append(dst, '\n')
}

func appendClient(dst []byte, r *Record) []byte {
	if !r.Client.IsValid() {
		return append(dst, '-')
	}
	return r.Client.AppendTo(dst)
}

// appendDisp never lets a place be empty: a record that was filled by half still has four letters.
func appendDisp(dst []byte, r *Record) []byte {
	for _, c := range r.Disp {
		if c == 0 {
			c = '-'
		}
		dst = append(dst, c)
	}
	return dst
}

// appendMS writes milliseconds: microseconds matter below one, tenths above.
func appendMS(dst []byte, d time.Duration) []byte {
	unit, per := time.Microsecond, int64(1000)
	if d >= time.Millisecond {
		unit, per = 100*time.Microsecond, 10
	}
	n := int64(max(d, 0)+unit/2) / int64(unit)
	dst = strconv.AppendInt(dst, n/per, 10)
	if n %= per; n > 0 {
		dst = append(dst, '.')
		for ; n > 0; n %= per {
			per /= 10
			dst = append(dst, byte('0'+n/per))
		}
	}
	return dst
}

// appendTime writes RFC 3339 in UTC with milliseconds; it is a third of a line's cost when the time package reads the
// layout each time.
func appendTime(dst []byte, t time.Time) []byte {
	t = t.UTC()
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	dst = append(digits(dst, year, 4), '-')
	dst = append(digits(dst, int(month), 2), '-')
	dst = append(digits(dst, day, 2), 'T')
	dst = append(digits(dst, hour, 2), ':')
	dst = append(digits(dst, minute, 2), ':')
	dst = append(digits(dst, second, 2), '.')
	return append(digits(dst, t.Nanosecond()/1e6, 3), 'Z')
}

// digits writes n with that many digits.
func digits(dst []byte, n, width int) []byte {
	at := len(dst) + width
	dst = append(dst, "0000"[:width]...)
	for i := at - 1; i >= at-width; i-- {
		dst[i] = byte('0' + n%10)
		n /= 10
	}
	return dst
}

type text interface{ ~string | ~[]byte }

// jsonText writes a member, or nothing for an empty value.
func jsonText[T text](dst []byte, name string, v T) []byte {
	if len(v) == 0 {
		return dst
	}
	return appendString(append(dst, name...), v)
}

// appendString writes a JSON string. Control characters and octets that are no UTF-8 stand in it as \xNN, so that the
// text a reader decodes is printable.
func appendString[T text](dst []byte, v T) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(v); {
		n := clean(v[i:], '\\')
		dst = append(dst, v[i:i+n]...)
		if i += n; i == len(v) {
			break
		}
		switch c := v[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
			i++
		case c == ' ':
			dst = append(dst, c)
			i++
		default:
			if n = printable(v[i:]); n > 0 {
				dst = append(dst, v[i:i+n]...)
				i += n
				continue
			}
			dst = hex(append(dst, '\\'), c)
			i++
		}
	}
	return append(dst, '"')
}

// clean gives the length of the run of printable ASCII that v begins with, without blank, quote and stop. Nearly all
// text is one run, and copied as such.
func clean[T text](v T, stop byte) int {
	for i := range len(v) {
		if c := v[i]; c <= ' ' || c >= 0x7f || c == '"' || c == stop {
			return i
		}
	}
	return len(v)
}

// place writes a field that has its place in the line, behind a blank.
func place[T text](dst []byte, v T) []byte { return bare(append(dst, ' '), v) }

// bare writes a value without any blank in it; "-" when there is none.
func bare[T text](dst []byte, v T) []byte {
	if len(v) == 0 {
		return append(dst, '-')
	}
	return plain(dst, v, true)
}

// named writes name=value, with quotes where the value has a blank or a quote in it.
func named[T text](dst []byte, name string, v T) []byte {
	if len(v) == 0 {
		return dst
	}
	dst = append(dst, name...)
	quote := false
	for i := range len(v) {
		quote = quote || v[i] == ' ' || v[i] == '"'
	}
	if !quote {
		return plain(dst, v, false)
	}
	dst = append(dst, '"')
	for i, from := 0, 0; i <= len(v); i++ {
		if i == len(v) || v[i] == '"' || v[i] == '\\' {
			dst = plain(dst, v[from:i], false)
			from = i + 1
			if i < len(v) {
				dst = append(dst, '\\', v[i])
			}
		}
	}
	return append(dst, '"')
}

// plain writes printable text; everything else, and blanks where they would part a field, as \xNN.
func plain[T text](dst []byte, v T, noBlank bool) []byte {
	for i := 0; i < len(v); {
		n := clean(v[i:], 0)
		dst = append(dst, v[i:i+n]...)
		if i += n; i == len(v) {
			break
		}
		c := v[i]
		switch {
		case c == '"' || c == ' ' && !noBlank:
			n = 1
		case c < utf8.RuneSelf:
			n = 0
		default:
			n = printable(v[i:])
		}
		if n == 0 {
			dst = hex(dst, c)
			i++
			continue
		}
		dst = append(dst, v[i:i+n]...)
		i += n
	}
	return dst
}

// printable gives the length of the character v begins with, 0 when it is no character or a control (C1).
func printable[T text](v T) int {
	var b [utf8.UTFMax]byte
	n := copy(b[:], v)
	c, size := utf8.DecodeRune(b[:n])
	if c == utf8.RuneError && size <= 1 || c < 0xa0 || c == 0x2028 || c == 0x2029 {
		return 0
	}
	return size
}

func hex(dst []byte, c byte) []byte {
	const digits = "0123456789abcdef"
	return append(dst, '\\', 'x', digits[c>>4], digits[c&15])
}
