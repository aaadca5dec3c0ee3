package config

import (
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The shapes of values with a unit, as the schema says them and the walk reads them.
const (
	durationPattern = `^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	percentPattern  = `^[0-9]+(\.[0-9]+)?%$`
	sharePattern    = `^(none|[0-9]+(\.[0-9]+)?%)$`
	sizePattern     = `^[0-9]+(B|KiB|MiB|GiB)$`
)

var (
	durations   = regexp.MustCompile(durationPattern)
	percentages = regexp.MustCompile(percentPattern)
)

func parseDuration(text string, f *field, v reflect.Value) *fault {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil || !durations.MatchString(strings.TrimPrefix(text, "-")):
		bad := expected("WG008", "a duration with its unit (ms, s, m, h)", text)
		if _, err := strconv.ParseFloat(text, 64); err == nil {
			bad.suggestion = text + "s"
		}
		return bad
	case float64(d) < f.min || float64(d) > f.max:
		return expected("WG010", "a duration"+f.betweenOf(func(x float64) string { return formatDuration(time.Duration(x)) }), text)
	}
	v.SetInt(int64(d))
	return nil
}

// formatDuration writes one unit, the largest that leaves no rest.
func formatDuration(d time.Duration) string {
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}, {time.Millisecond, "ms"}} {
		if d == 0 {
			return "0s"
		}
		if d%u.unit == 0 && (u.unit < time.Minute || d >= 2*u.unit) {
			return strconv.FormatInt(int64(d/u.unit), 10) + u.name
		}
	}
	return formatFloat(float64(d)/float64(time.Millisecond)) + "ms"
}

// sizeUnits are the units of a size, the largest first.
var sizeUnits = []struct {
	name string
	size int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

func parseSize(text string, f *field, v reflect.Value) *fault {
	for _, u := range sizeUnits {
		digits, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || digits[0] == '+' || digits[0] == '-' && n == 0 {
			break
		}
		if n > math.MaxInt64/u.size || float64(n*u.size) < f.min || float64(n*u.size) > f.max {
			return expected("WG010", "a size"+f.betweenOf(func(x float64) string { return formatSize(int64(x)) }), text)
		}
		v.SetInt(n * u.size)
		return nil
	}
	bad := expected("WG008", "a size with its unit (B, KiB, MiB, GiB)", text)
	digits := strings.TrimRight(text, " bBiKkMmGg")
	if _, err := strconv.ParseUint(digits, 10, 63); err == nil {
		switch unit := strings.ToUpper(strings.Trim(text[len(digits):], " ")); {
		case strings.HasPrefix(unit, "K"), strings.HasPrefix(unit, "M"), strings.HasPrefix(unit, "G"):
			bad.suggestion = digits + unit[:1] + "iB"
		}
	}
	return bad
}

func formatSize(n int64) string {
	for _, u := range sizeUnits {
		if n != 0 && n%u.size == 0 {
			return strconv.FormatInt(n/u.size, 10) + u.name
		}
	}
	return "0B"
}

func parsePercent(text string, f *field, v reflect.Value) *fault {
	n, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	if err != nil || !percentages.MatchString(strings.TrimPrefix(text, "-")) {
		bad := expected("WG008", "a percentage such as 25%", text)
		if percentages.MatchString(text + "%") {
			bad.suggestion = text + "%"
		}
		return bad
	}
	if n < f.min || n > min(f.max, 10000) {
		return expected("WG010", "a percentage"+f.betweenOf(func(x float64) string { return formatFloat(x) + "%" }), text)
	}
	v.SetFloat(n / 100)
	return nil
}

func formatPercent(share float64) string {
	return formatFloat(math.Round(share*1e10)/1e8) + "%"
}

func parseShare(text string, f *field, v reflect.Value) *fault {
	if text == "none" {
		v.SetFloat(0)
		return nil
	}
	bad := parsePercent(text, f, v)
	if bad != nil && bad.code == "WG008" {
		bad.text = expected("", "none, or a percentage such as 125%", text).text
	}
	return bad
}

func formatShare(v reflect.Value) string {
	if v.Float() == 0 {
		return "none"
	}
	return formatPercent(v.Float())
}
