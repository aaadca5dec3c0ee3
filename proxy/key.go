package proxy

import (
	"github.com/cespare/xxhash/v2"

	"github.com/wyegate/wyegate/dcr"
)

// Key is the key of one initial request. Bytes is lent: valid until the Scratch is used again.
type Key struct {
	Bytes  []byte
	Hash   uint64
	Source KeySource
	Rule   int    // index into Keyer.Rules; -1 when no rule gave the key
	Number []byte // not nil: this number must be resolved first, and nothing else here is valid
}

// Scratch is what one worker computes keys in.
type Scratch struct {
	DCR  dcr.Scratch
	join []byte
}

// Key takes the key of an initial request: the rules in order, else the parts of the default key joined (dcr.md 5.2).
func (t *Target) Key(m Message, parts []KeyPart, s *Scratch, tr *dcr.Trace) Key {
	if t.Keyer != nil {
		res := t.Keyer.Key(m, &s.DCR, tr)
		switch res.Outcome {
		case dcr.Matched:
			return Key{Bytes: res.Key, Hash: xxhash.Sum64(res.Key), Source: SourceRule, Rule: res.Rule}
		case dcr.NeedNumber:
			return Key{Number: res.Number, Rule: -1}
		}
	}
	return DefaultKey(m, parts, s)
}

// DefaultKey joins the parts without a separator.
func DefaultKey(m Message, parts []KeyPart, s *Scratch) Key {
	s.join = s.join[:0]
	for _, p := range parts {
		s.join = m.AppendPart(s.join, p)
	}
	return Key{Bytes: s.join, Hash: xxhash.Sum64(s.join), Source: SourceDefault, Rule: -1}
}
