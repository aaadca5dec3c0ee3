package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// thousands writes a count with commas: 1,204.
func thousands(n int) string {
	s := strconv.Itoa(n)
	sign := ""
	if n < 0 {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// age writes a time span with its two largest units: 3d4h, 6m12s, 41s.
func age(d time.Duration) string {
	d = max(d, 0).Truncate(time.Second)
	days, hours, minutes, seconds := int(d/(24*time.Hour)), int(d/time.Hour)%24, int(d/time.Minute)%60, int(d/time.Second)%60
	switch {
	case days > 0 && hours > 0:
		return fmt.Sprintf("%dd%dh", days, hours)
	case days > 0:
		return fmt.Sprintf("%dd", days)
	case hours > 0 && minutes > 0:
		return fmt.Sprintf("%dh%dm", hours, minutes)
	case hours > 0:
		return fmt.Sprintf("%dh", hours)
	case minutes > 0 && seconds > 0:
		return fmt.Sprintf("%dm%ds", minutes, seconds)
	case minutes > 0:
		return fmt.Sprintf("%dm", minutes)
	default:
		return fmt.Sprintf("%ds", seconds)
	}
}

// spaced is age with blanks, for sentences: 3 d 4 h.
func spaced(d time.Duration) string {
	var b strings.Builder
	for i, c := range age(d) {
		digit := c >= '0' && c <= '9'
		if i > 0 && digit != (b.String()[b.Len()-1] >= '0' && b.String()[b.Len()-1] <= '9') {
			b.WriteByte(' ')
		}
		b.WriteRune(c)
	}
	return b.String()
}

// clock writes a time of today as such, another with its date.
func clock(t, now time.Time, layout string) string {
	t, now = t.Local(), now.Local()
	if t.IsZero() {
		return "-"
	}
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format(layout)
	}
	return t.Format("2006-01-02 15:04")
}

func percent(ratio float64) string { return strconv.FormatFloat(ratio*100, 'f', 1, 64) + "%" }

// dash stands for what is not there.
func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// bar draws how much is done, in cells. The last open cell is hatched while something is being closed.
func bar(total, left, cells int, closing bool) string {
	done := cells
	if total > 0 {
		done = min(cells*(total-min(left, total))/total, cells)
	}
	if left > 0 {
		done = min(done, cells-1)
	}
	open := strings.Repeat("░", cells-done)
	if closing && left > 0 {
		open = "▒" + strings.Repeat("░", cells-done-1)
	}
	return strings.Repeat("█", done) + open
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return thousands(n) + " " + many
}
