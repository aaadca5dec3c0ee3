package dcr

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2"
)

func lettersOf(s string) []letter {
	var out []letter
	for i, r := range s {
		out = append(out, letter{r, i})
	}
	return out
}

func mustPattern(t testing.TB, text string, mode MatchMode) *pattern {
	t.Helper()
	p, bad := compilePattern(lettersOf(text), &Options{MatchMode: mode})
	if bad != nil {
		t.Fatalf("%s: %s: %s", text, bad.code, bad.text)
	}
	return p
}

// TestJavaSyntax: what java.util.regex.Pattern of Java 5 says about a pattern and a subject. "-" is no match, "()" a
// match whose group took no part.
func TestJavaSyntax(t *testing.T) {
	for _, c := range []struct{ pattern, subject, want string }{
		{`a(b)c`, "abc", "b"}, {`a(b)c`, "xabcx", "b"}, {`(a)|b`, "b", "()"}, {`(a*)`, "", ""},
		{`(a|ab)`, "ab", "ab"}, // the full match comes first, though the search would take a
		{`(a.c)`, "a\nc", "-"}, {`(a.c)`, "a\u0085c", "-"}, {`(a.c)`, "a\u2028c", "-"}, {`(?s)(a.c)`, "a\nc", "a\nc"},
		{`(?d)(a.c)`, "a\rc", "a\rc"}, {`(?d)(a.c)`, "a\nc", "-"},
		{`(\w+)`, "é", "-"}, {`(\d)`, "\u0663", "-"}, {`(\s)`, "\v", "\v"}, {`(\s)`, "\u00a0", "-"}, {`(\S+)`, "ab ", "ab"},
		{`(?i)(straße)`, "STRAßE", "STRAßE"}, {`(?i)(é)`, "É", "-"}, {`(?iu)(é)`, "É", "É"}, {`(?i)(k)`, "\u212a", "-"},
		{`(?i)([a-c])`, "B", "B"}, {`(?i)([^a])`, "A", "-"}, {`(?i:a)(B)`, "AB", "B"}, {`(?i:a)(B)`, "Ab", "-"},
		{`(?i)a(?-i)(b)`, "Ab", "b"}, {`(?x) ( a b ) # comment`, "ab", "ab"}, {`(?x)([a b])`, " ", "-"},
		{`([a-c[x-z]])`, "y", "y"}, {`([a-z&&[^m-p]])`, "n", "-"}, {`([a-z&&[^m-p]])`, "q", "q"}, {`([a-z&&m])`, "m", "m"},
		{`([a-z&&[def]&&[e]])`, "d", "-"}, {`([a-z&&[def]&&[e]])`, "e", "e"}, {`([]a])`, "]", "]"}, {`([^]a])`, "]", "-"},
		{`([a^b])`, "^", "^"}, {`([a\-z])`, "z", "z"}, {`([a&b])`, "&", "&"}, {`([\w-]+)`, "a-", "a-"}, {`([\Q^]\E])`, "^", "^"},
		{`\Qa.b\E(c)`, "a.bc", "c"}, {`\Qa.b\E(c)`, "axbc", "-"}, {`(\Qab\E+)`, "abbb", "abbb"}, {`(\Qab`, "ab", "refused"},
		{`(\x41\u0042\0103\t)`, "ABC\t", "ABC\t"}, {`(\cA)`, "\x01", "\x01"}, {`(\e\a\f\v)`, "\x1b\a\f\v", "\x1b\a\f\v"},
		{`(\p{Lu})`, "É", "É"}, {`(\pL)`, "é", "é"}, {`(\p{IsLu})`, "é", "-"}, {`(\P{L})`, "1", "1"}, {`(\p{Punct})`, "!", "!"},
		{`(\p{Alpha}+)`, "abé", "ab"}, {`(\p{XDigit}+)`, "1aFg", "1aF"}, {`([\p{Lower}&&[^aeiou]])`, "a", "-"},
		{`(a{2,3})`, "aaaa", "aaa"}, {`(a{2,3}?)b`, "aaab", "aaa"}, {`(a+?)`, "aaa", "aaa"}, // full match first
		{`x(a+?)`, "_xaaa", "a"}, {`(a*+)a`, "aaa", "-"}, {`(a++)b`, "aab", "aa"}, {`(?>a+)(b)`, "aab", "b"}, {`((?>a|ab)c)`, "abc", "-"},
		{`(?=ab)(a)`, "ab", "a"}, {`(?!ab)(a)`, "ab", "-"}, {`(?<=a)(b)`, "ab", "b"}, {`(?<!a)(b)`, "ab", "-"}, {`(?<=a{1,3})(b)`, "aab", "b"},
		{`(a)\1`, "aa", "a"}, {`(a)\1`, "ab", "-"}, {`(?i)(a)\1`, "aA", "a"}, {`(a)(b)?\2`, "ab", "-"}, {`(a)\11`, "aa1", "a"},
		{`^(a)$`, "a\n", "a"}, {`^(a)$`, "a\r\n", "a"}, {`^(a)$`, "a\n\n", "-"}, {`^(a)\z`, "a\n", "-"}, {`^(a)\Z`, "a\u2028", "a"},
		{`(?d)^(a)$`, "a\r", "-"}, {`(?m)^(b)$`, "a\nb\nc", "b"}, {`(?m)^(b)$`, "a\rb\r\nc", "b"}, {`^(b)`, "a\nb", "-"},
		{`\b(ab)\b`, "x ab y", "ab"}, {`\b(ab)\b`, "éab", "-"}, {`\B(b)`, "ab", "b"},
		{`(a|)`, "", ""}, {`()`, "x", ""}, {`(?:a|(b))c`, "bc", "b"}, {`a(?#)`, "a", "refused"},
		{"(\u65e5+)", "x\u65e5\u65e5", "\u65e5\u65e5"}, {`(.+)`, "a\xffb", "a\xffb"}, {`(?=a)(.+)`, "a\xff\u65e5b", "a\xff\u65e5b"},
		{`sip:([^@;]+)@`, "sip:a%40b@c", "a%40b"}, {`(?<!\+)(46)`, "+46 46", "46"},
	} {
		p, bad := compilePattern(lettersOf(c.pattern), &Options{})
		if c.want == "refused" {
			if bad == nil {
				t.Errorf("%s is accepted", c.pattern)
			}
			continue
		}
		if bad != nil {
			t.Errorf("%s: %s %s", c.pattern, bad.code, bad.text)
			continue
		}
		group, h := p.match([]byte(c.subject), &Scratch{})
		got := string(group)
		switch {
		case h == missed:
			got = "-"
		case h == limited:
			got = "limit"
		case group == nil:
			got = "()"
		}
		if got != c.want {
			t.Errorf("%s on %q: %q, want %q", c.pattern, c.subject, got, c.want)
		}
	}
}

func TestMatchModes(t *testing.T) {
	for _, c := range []struct {
		mode MatchMode
		want hit
	}{{MatchAuto, matched}, {MatchFull, missed}, {MatchSearch, matched}} {
		for _, pattern := range []string{`b([0-9]+)`, `b(?=[0-9])([0-9]+)`} {
			if _, h := mustPattern(t, pattern, c.mode).match([]byte("ab12c"), &Scratch{}); h != c.want {
				t.Errorf("mode %d, %s: %d, want %d", c.mode, pattern, h, c.want)
			}
		}
	}
	group, _ := mustPattern(t, `(a|ab)`, MatchSearch).match([]byte("ab"), &Scratch{})
	if string(group) != "a" {
		t.Errorf("search takes %q", group)
	}
}

// TestEngines: what means the same in Go runs there, the rest on the backtracking engine.
func TestEngines(t *testing.T) {
	for pattern, linear := range map[string]bool{
		`^/conference/([0-9]+)(?:[/?].*)?$`: true, `([a-z&&[^m]])`: true, `(?i)(a)`: true, `(a+)+$`: true,
		`(?=a)(a)`: false, `(a)\1`: false, `(a++)`: false, `(?>a)(b)`: false, `(?m)^(a)`: false,
	} {
		if p := mustPattern(t, pattern, MatchAuto); (p.full != nil) != linear {
			t.Errorf("%s: linear %v, want %v", pattern, p.full != nil, linear)
		}
	}
}

// TestExplosivePatterns: where the linear engine has no words for a pattern, one that can explode is refused; where it
// has, the pattern is harmless.
func TestExplosivePatterns(t *testing.T) {
	for _, bad := range []string{`(?=x)(a+)+$`, `(?=x)(?:a*)*(b)`, `(a+)+\1`, `(?!x)(?:a|a)*(b)`, `(?!x)(?:a|ab)*(b)`, `(?!x)(?:a*b*)*(c)`,
		`(?!x)(?:[a-z]+[0-9]*)+(c)`, `(?!x)(?:(?:a+){1,20})(b)`, `(?!x)(?:\w+\s*)+(;)`} {
		if _, p := compilePattern(lettersOf(bad), &Options{}); p == nil || p.code != "DCR209" {
			t.Errorf("%s is not refused: %+v", bad, p)
		}
	}
	for _, good := range []string{`(?=x)([^/]+/)*`, `(?!x)(?:%[0-9a-f]{2}|[a-z])*(;)`, `(?!x)(a+)b+c*`, `(?<!x)(?:a++)*(b)`, `(?=.*;)([a-z]+)`} {
		if _, p := compilePattern(lettersOf(good), &Options{}); p != nil {
			t.Errorf("%s is refused: %s", good, p.text)
		}
	}
	hostile := []byte(strings.Repeat("a", 8000) + "!")
	for _, text := range []string{`(a+)+$`, `(a|a)*b`, `(a?){90}a{90}$`, `(x+x+)+y`, `^(([a-z])+.)+[A-Z]([a-z])+$`} {
		p := mustPattern(t, text, MatchAuto)
		start := time.Now()
		g1, h1 := p.match(hostile, &Scratch{})
		g2, h2 := p.match(hostile, &Scratch{})
		if spent := time.Since(start); spent > 10*time.Second {
			t.Errorf("%s took %v", text, spent)
		}
		if h1 != h2 || string(g1) != string(g2) {
			t.Errorf("%s: two nodes differ", text)
		}
	}
	p := mustPattern(t, `(?=(?=(?=(?!(?!a)))))(a)`, MatchAuto)
	if group, h := p.match([]byte("a"), &Scratch{}); h != matched || string(group) != "a" {
		t.Errorf("nested look-around: %q %d", group, h)
	}
}

// TestBacktrackingIsBounded: a pattern of high degree on a long subject ends, counts as no match, and is counted.
func TestBacktrackingIsBounded(t *testing.T) {
	rs := compiled(t, `<user-centric-rules><sip-rules><request-uri><match>(?!x).*a.*a.*a.*a.*a.*(\+)[!?]</match></request-uri></sip-rules></user-centric-rules>`, Options{})
	var s Scratch
	start := time.Now()
	res := rs.Key(rawSIP("sip:"+strings.Repeat("a", 4000)+"+b", nil), &s, nil)
	if res.Outcome != NoKey || s.Limits().Steps != 1 || time.Since(start) > 20*time.Second {
		t.Errorf("%+v after %v", res, time.Since(start))
	}
	res = rs.Key(rawSIP("sip:"+strings.Repeat("a", DefaultMaxSubject)+"+!", nil), &s, nil)
	if res.Outcome != NoKey || s.Limits().Steps != 1 {
		t.Errorf("a subject above max_uri: %+v, limits %+v", res, s.Limits())
	}
}

func TestLongestLiteral(t *testing.T) {
	for pattern, want := range map[string]string{
		`/users/((?:sip|tel):[^/?]+)`: "/users/", `^/conference/([0-9]+)`: "/conference/", `(abc)+d`: "abc", `a|b`: "", `x?yz`: "yz",
		`(?i)abc`: "", `a(bc)d`: "abcd", `(?=abc)d`: "d", `ab*c`: "a", `\Q..\E(x)`: "..x",
	} {
		tree, _, bad := parsePattern(lettersOf(pattern))
		if bad != nil {
			t.Fatal(bad.text)
		}
		if got := longestLiteral(tree); got != want {
			t.Errorf("%s: %q, want %q", pattern, got, want)
		}
	}
}

// FuzzPattern: no text makes the parser fall over; and where a pattern means the same to Go as written, Go, our reading
// of it and the backtracking engine agree.
func FuzzPattern(f *testing.F) {
	for _, s := range []string{`a(b|c)*d`, `^/([0-9]+)$`, `[^a-z]+`, `(?i)ab`, `(a{2,3}?)(b)`, `\Qx\E`, `[a-z&&[^b]]`, `(?<=a)b`, `\p{L}+`} {
		f.Add(s, "abcd-aab/42")
	}
	f.Fuzz(func(t *testing.T, text, subject string) {
		if len(text) > 60 || len(subject) > 60 || !utf8.ValidString(text) || !utf8.ValidString(subject) {
			return
		}
		p, bad := compilePattern(lettersOf(text), &Options{MatchMode: MatchSearch})
		if bad != nil {
			if bad.code == "" || bad.text == "" {
				t.Fatalf("%q: %+v", text, bad)
			}
			return
		}
		var s Scratch
		group, h := p.match([]byte(subject), &s)
		if h == limited {
			return
		}
		tree, groups, _ := parsePattern(lettersOf(text))
		if p.search != nil && explosive(tree, false, nil) == nil && !strings.ContainsAny(subject, "\n\r\u0085\u2028\u2029") {
			compareEngines(t, text, subject, tree, groups, group, h)
		}
		if plainSyntax(text) {
			re, err := regexp.Compile(text)
			if err != nil {
				return
			}
			loc := re.FindStringSubmatchIndex(subject)
			if (loc != nil) != (h == matched) {
				t.Fatalf("%q on %q: Go %v, we %d", text, subject, loc, h)
			}
			if groups > 0 && loc != nil && loc[2] >= 0 && subject[loc[2]:loc[3]] != string(group) {
				t.Fatalf("%q on %q: Go %q, we %q", text, subject, subject[loc[2]:loc[3]], group)
			}
		}
	})
}

// compareEngines runs the backtracking engine on a pattern that the linear one has run.
func compareEngines(t *testing.T, text, subject string, tree *reNode, groups int, group []byte, h hit) {
	t.Helper()
	re, err := regexp2.Compile(printFor(true, tree), regexp2.None)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	re.MatchTimeout = time.Second
	m, err := re.FindStringMatch(subject)
	if err != nil {
		return
	}
	if (m != nil) != (h == matched) {
		t.Fatalf("%q on %q: backtracking %v, linear %d (%s)", text, subject, m, h, printFor(true, tree))
	}
	if m == nil || groups == 0 {
		return
	}
	if repeatsGroup(tree, false) {
		return // which round of a repeat a group keeps is the one thing the engines are known to differ in
	}
	if g := m.GroupByNumber(1); g != nil && len(g.Captures) > 0 && g.String() != string(group) {
		t.Fatalf("%q on %q: backtracking %q, linear %q", text, subject, g.String(), group)
	}
}

// repeatsGroup reports whether group 1 stands inside a repeat.
func repeatsGroup(n *reNode, inside bool) bool {
	if n.kind == reGroup && n.num == 1 && inside {
		return true
	}
	for _, k := range n.kids {
		if repeatsGroup(k, inside || n.kind == reRepeat) {
			return true
		}
	}
	return false
}

// plainSyntax picks patterns whose every character means the same to Go and to Java 5.
func plainSyntax(s string) bool {
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789/@;:=-|()") == "" && !strings.Contains(s, "|)") || !strings.ContainsAny(s, `\[]{}.^$?*+#&`)
}

func TestWidth(t *testing.T) {
	for pattern, want := range map[string]string{`abc`: "3 true", `a{2,4}`: "4 true", `a|bcd`: "3 true", `a+`: "0 false", `(?=a*)b`: "1 true", `(a)\1`: "0 false"} {
		tree, _, bad := parsePattern(lettersOf(pattern))
		if bad != nil {
			t.Fatal(bad.text)
		}
		n, ok := width(tree)
		if !ok {
			n = 0
		}
		if got := fmt.Sprint(n, " ", ok); got != want {
			t.Errorf("%s: %s, want %s", pattern, got, want)
		}
	}
}
