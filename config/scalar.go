package config

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// fault is why a text cannot be the value of a key.
type fault struct {
	code       string
	text       string // goes behind the path of the key
	suggestion string
}

func expected(code, what, text string) *fault {
	return &fault{code: code, text: fmt.Sprintf("%s expected, not %q", what, text)}
}

// scalar is how one Go type stands in a file: read, written, and described in the schema.
type scalar struct {
	parse  func(text string, f *field, v reflect.Value) *fault
	format func(v reflect.Value) string
	schema func(f *field) map[string]any
}

// scalarOf gives the scalar of a type; nil when the type is a map, a list or a struct of keys.
func scalarOf(t reflect.Type) *scalar {
	if s, ok := scalars[t]; ok {
		return s
	}
	switch t.Kind() {
	case reflect.String:
		return scalars[reflect.TypeFor[string]()]
	case reflect.Bool:
		return scalars[reflect.TypeFor[bool]()]
	case reflect.Int:
		return scalars[reflect.TypeFor[int]()]
	case reflect.Float64:
		return scalars[reflect.TypeFor[float64]()]
	default:
		return nil
	}
}

// scalars is every type of a single value, in one table.
var scalars = map[reflect.Type]*scalar{
	reflect.TypeFor[string]():        {parseText, reflect.Value.String, textSchema},
	reflect.TypeFor[bool]():          {parseBool, func(v reflect.Value) string { return strconv.FormatBool(v.Bool()) }, typed("boolean")},
	reflect.TypeFor[int]():           {parseInt, func(v reflect.Value) string { return strconv.FormatInt(v.Int(), 10) }, intSchema},
	reflect.TypeFor[float64]():       {parseFloat, func(v reflect.Value) string { return formatFloat(v.Float()) }, floatSchema},
	reflect.TypeFor[time.Duration](): {parseDuration, func(v reflect.Value) string { return formatDuration(time.Duration(v.Int())) }, pattern(durationPattern)},
	reflect.TypeFor[Size]():          {parseSize, func(v reflect.Value) string { return formatSize(v.Int()) }, pattern(sizePattern)},
	reflect.TypeFor[Percent]():       {parsePercent, func(v reflect.Value) string { return formatPercent(v.Float()) }, pattern(percentPattern)},
	reflect.TypeFor[Share]():         {parseShare, formatShare, pattern(sharePattern)},
	reflect.TypeFor[FileMode]():      {parseMode, func(v reflect.Value) string { return fmt.Sprintf("%04o", v.Uint()) }, modeSchema},
	reflect.TypeFor[Path]():          {nil, func(v reflect.Value) string { return v.Interface().(Path).Text }, typed("string")},
	reflect.TypeFor[Bind]():          {parseBind, stringer, typed("string")},
	reflect.TypeFor[HostPort]():      {parseHostPort, stringer, typed("string")},
	reflect.TypeFor[netip.Addr]():    {parseAddr, stringer, typed("string")},
	reflect.TypeFor[netip.Prefix]():  {parsePrefix, stringer, typed("string")},
	reflect.TypeFor[StatusRange]():   {parseStatus, stringer, statusSchema},
}

func stringer(v reflect.Value) string { return v.Interface().(fmt.Stringer).String() }

func parseText(text string, f *field, v reflect.Value) *fault {
	if text == "" && f.optional() {
		v.SetString("")
		return nil
	}
	if f.words != nil && !slices.Contains(f.words, text) {
		bad := expected("WG009", oneOf(f.words), text)
		bad.suggestion = nearest(strings.ToLower(text), f.words)
		return bad
	}
	if bad := f.shape(text); bad != nil {
		return bad
	}
	v.SetString(text)
	return nil
}

// oneOf lists allowed words for a text.
func oneOf(words []string) string {
	if len(words) == 1 {
		return "only " + words[0] + " is"
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

func parseBool(text string, _ *field, v reflect.Value) *fault {
	if text != "true" && text != "false" {
		bad := expected("WG009", "true or false", text)
		switch strings.ToLower(text) {
		case "yes", "on", "true", "y", "1":
			bad.suggestion = "true"
		case "no", "off", "false", "n", "0":
			bad.suggestion = "false"
		default:
			bad.suggestion = nearest(text, []string{"true", "false"})
		}
		return bad
	}
	v.SetBool(text == "true")
	return nil
}

func parseInt(text string, f *field, v reflect.Value) *fault {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || strings.HasPrefix(text, "+") || float64(n) < f.min || float64(n) > f.max {
		return expected("WG010", "a whole number"+f.between(), text)
	}
	v.SetInt(n)
	return nil
}

func parseFloat(text string, f *field, v reflect.Value) *fault {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || strings.ContainsAny(text, "xXpPiInN_") || n < f.min || n > f.max {
		code := "WG010"
		if f.code != "" && err == nil {
			code = f.code
		}
		return expected(code, "a number"+f.between(), text)
	}
	v.SetFloat(n)
	return nil
}

func formatFloat(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

func parseMode(text string, _ *field, v reflect.Value) *fault {
	n, err := strconv.ParseUint(text, 8, 32)
	if err != nil || n > 0o777 || len(text) < 3 || len(text) > 4 {
		return expected("WG010", "a file mode such as \"0660\"", text)
	}
	v.SetUint(n)
	return nil
}

func parseStatus(text string, _ *field, v reflect.Value) *fault {
	from, to, ranged := strings.Cut(text, "-")
	if !ranged {
		to = from
	}
	a, errA := strconv.Atoi(from)
	b, errB := strconv.Atoi(to)
	if errA != nil || errB != nil || a < 100 || b > 699 || a > b || len(from) != 3 || len(to) != 3 {
		return expected("WG010", "a status from 100 to 699, or a range such as 200-399,", text)
	}
	v.Set(reflect.ValueOf(StatusRange{a, b}))
	return nil
}
