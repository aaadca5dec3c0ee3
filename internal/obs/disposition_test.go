package obs

import (
	"errors"
	"strings"
	"testing"
)

func TestExplainSample(t *testing.T) {
	for code, want := range map[string]string{
		"TWR2": "timer ran out while waiting for a final answer; key from a rule; second server was tried",
		"--R-": "ended normally; key from a rule; first choice",
		"PK--": "rejected by policy or limit while its key and application were looked for; no key and no server",
		"SCN9": "server failed or refused while connecting; round robin; ninth server was tried",
		"--TM": "ended normally; server from a valid token; health was ignored (panic)",
		"R--X": "a resource was used up; no key and no server; no server was left",
	} {
		got, err := Explain(code)
		if err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", code, got, err, want)
		}
	}
}

// TestEveryLetterHasItsWords: each letter of operations.md 8.4 in its place, and no other.
func TestEveryLetterHasItsWords(t *testing.T) {
	places := []string{"-CSTPLDARI", "-PKQCWD", "RFTSN-", "-23456789XMHV"}
	seen := map[string]string{}
	for place, letters := range places {
		for c := byte(' '); c < 0x7f; c++ {
			code := []byte("--R-")
			code[place] = c
			text, err := Explain(string(code))
			if known := strings.IndexByte(letters, c) >= 0; known != (err == nil) {
				t.Errorf("%s: known %v, error %v", code, known, err)
			} else if known {
				if other, twice := seen[text]; twice && other != string(code) {
					t.Errorf("%s and %s have the same words: %s", code, other, text)
				}
				seen[text] = string(code)
			} else if !errors.Is(err, ErrDisposition) {
				t.Errorf("%s: %v", code, err)
			}
		}
	}
	for _, code := range []string{"", "--R", "--R--", "é--"} {
		if _, err := Explain(code); !errors.Is(err, ErrDisposition) {
			t.Errorf("%q: %v", code, err)
		}
	}
}
