package engine

import (
	"github.com/wyegate/wyegate/config"
	"github.com/wyegate/wyegate/dcr"
)

// FixedNumbers answers ENUM from a table: number with its plus to URI. All other numbers have no answer. It serves test
// files and explain without a network.
type FixedNumbers map[string]string

// Resolve implements dcr.Resolver.
func (f FixedNumbers) Resolve(number []byte) ([]byte, dcr.Answer) {
	if uri, ok := f["+"+string(number)]; ok {
		return []byte(uri), dcr.AnswerKnown
	}
	return nil, dcr.AnswerNull
}

// For is the Env.Resolver of every service.
func (f FixedNumbers) For(string, *config.Enum) dcr.Resolver { return f }
