package obs

import (
	"errors"
	"fmt"
	"strings"
)

// ErrDisposition says that a text is no four-letter disposition.
var ErrDisposition = errors.New("not a disposition")

// The letters of operations.md 8.4, by place.
var (
	endedBy = map[byte]string{
		'-': "ended normally",
		'C': "client cancelled or went away",
		'S': "server failed or refused",
		'T': "timer ran out",
		'P': "rejected by policy or limit",
		'L': "answered here",
		'D': "ended because of a drain",
		'A': "ended by an administrator",
		'R': "a resource was used up",
		'I': "internal fault",
	}
	phases = map[byte]string{
		'-': "",
		'P': "while parsing",
		'K': "while its key and application were looked for",
		'Q': "while waiting for a connection",
		'C': "while connecting",
		'W': "while waiting for a final answer",
		'D': "in the dialog, body or websocket",
	}
	serverFrom = map[byte]string{
		'R': "key from a rule",
		'F': "default key",
		'T': "server from a valid token",
		'S': "token of a server that is gone, key hashed again",
		'N': "round robin",
		'-': "no key and no server",
	}
	choices = map[byte]string{
		'-': "first choice",
		'X': "no server was left",
		'M': "health was ignored (panic)",
		'H': "held by the server of its live key",
		'V': "server of a standby site",
	}
	ordinals = [...]string{"second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth"}
)

// Explain puts a disposition in words: "TWR2" is "timer ran out while waiting for a final answer; key from a rule;
// second server was tried".
func Explain(code string) (string, error) {
	if len(code) != 4 {
		return "", fmt.Errorf("%w: %q has not four letters", ErrDisposition, code)
	}
	who, ok := endedBy[code[0]]
	if !ok {
		return "", wrongLetter(code, 0, "-CSTPLDARI")
	}
	phase, ok := phases[code[1]]
	if !ok {
		return "", wrongLetter(code, 1, "-PKQCWD")
	}
	from, ok := serverFrom[code[2]]
	if !ok {
		return "", wrongLetter(code, 2, "RFTSN-")
	}
	choice, ok := choices[code[3]]
	if c := code[3]; c >= '2' && c <= '9' {
		choice, ok = ordinals[c-'2']+" server was tried", true
	}
	if !ok {
		return "", wrongLetter(code, 3, "-2…9XMHV")
	}
	parts := []string{strings.TrimSpace(who + " " + phase), from}
	if code[2] != '-' || code[3] != '-' {
		parts = append(parts, choice)
	}
	return strings.Join(parts, "; "), nil
}

func wrongLetter(code string, at int, letters string) error {
	return fmt.Errorf("%w: letter %d of %q is none of %s", ErrDisposition, at+1, code, letters)
}
