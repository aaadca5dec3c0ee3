package proxy

import (
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/wyegate/wyegate/dcr"
)

// parts is a message that has the parts of a default key and nothing else.
type parts map[KeyPart]string

func (parts) Describe(*dcr.Request) {}

func (p parts) AppendPart(dst []byte, k KeyPart) []byte { return append(dst, p[k]...) }

// fixed is a Keyer with one answer.
type fixed struct{ result dcr.Result }

func (f fixed) Key(dcr.Message, *dcr.Scratch, *dcr.Trace) dcr.Result { return f.result }
func (f fixed) Rules() []dcr.Rule                                    { return []dcr.Rule{{Path: "/sip-rules/header[1]"}} }

// The document: rules first, and without a match the default key, from-tag and call-id joined.
func TestKeyRuleElseDefault(t *testing.T) {
	m := parts{PartFromTag: "77", PartCallID: "c7@ua"}
	order := []KeyPart{PartFromTag, PartCallID}
	var s Scratch
	for _, c := range []struct {
		name   string
		keyer  dcr.Keyer
		key    string
		source KeySource
		hash   uint64
	}{
		{"no rules", nil, "77c7@ua", SourceDefault, 0x99fdc394ad8e329c},
		{"no match", fixed{dcr.Result{Outcome: dcr.NoKey}}, "77c7@ua", SourceDefault, 0x99fdc394ad8e329c},
		{"rule", fixed{dcr.Result{Outcome: dcr.Matched, Key: []byte("alice")}}, "alice", SourceRule, 0x73a3ea485f2e6049},
	} {
		k := (&Target{Keyer: c.keyer}).Key(m, order, &s, nil)
		if string(k.Bytes) != c.key || k.Source != c.source || k.Hash != c.hash || k.Hash != xxhash.Sum64String(c.key) {
			t.Errorf("%s: key %q from %s, hash %x", c.name, k.Bytes, k.Source, k.Hash)
		}
	}
	k := (&Target{Keyer: fixed{dcr.Result{Outcome: dcr.NeedNumber, Number: []byte("46")}}}).Key(m, order, &s, nil)
	if string(k.Number) != "46" {
		t.Errorf("a rule that waits for a number gives %+v", k)
	}
}
