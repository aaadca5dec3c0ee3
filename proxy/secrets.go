package proxy

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
)

// Secret is one numbered secret that all nodes share.
type Secret struct {
	Number uint8 // 0-15
	Bytes  []byte
}

// Keys are what is derived from one secret by HKDF-SHA-256 (sip-http.md section 5 and 6).
type Keys struct {
	Number      uint8
	Branch      cipher.Block // Kb: MAC of the Via branch
	Transaction [16]byte     // Kd: seed of the transaction identity
	ToTag       cipher.Block // Kg: our own To tags
	Token       cipher.Block // Kt: MAC of a token
	Mask        cipher.Block // Km: mask over a token
	Tickets     []byte       // secret of TLS session tickets (sip-http.md 13.1)
}

// Secrets holds the keys of all secrets in force: the first writes, all read. It is immutable.
type Secrets struct {
	writer *Keys
	byNum  [16]*Keys
}

// NewSecrets derives the keys. It refuses an empty list, a number above 15 and a number given twice.
func NewSecrets(list []Secret) (*Secrets, error) {
	if len(list) == 0 {
		return nil, errors.New("proxy: no secret")
	}
	s := &Secrets{}
	for _, sec := range list {
		if sec.Number > 15 || s.byNum[sec.Number] != nil {
			return nil, fmt.Errorf("proxy: secret number %d is above 15 or given twice", sec.Number)
		}
		k, err := derive(sec)
		if err != nil {
			return nil, fmt.Errorf("proxy: secret number %d: %w", sec.Number, err)
		}
		s.byNum[sec.Number] = k
		if s.writer == nil {
			s.writer = k
		}
	}
	return s, nil
}

// Writer gives the keys that new branches and tokens are made with.
func (s *Secrets) Writer() *Keys { return s.writer }

// Tickets gives what TLS ticket keys are derived from, that of the writer first.
func (s *Secrets) Tickets() [][]byte {
	out := [][]byte{s.writer.Tickets}
	for _, k := range s.byNum {
		if k != nil && k != s.writer {
			out = append(out, k.Tickets)
		}
	}
	return out
}

// ByNumber gives the keys of a secret; nil when that number is not in force.
func (s *Secrets) ByNumber(n uint8) *Keys { return s.byNum[n&15] }

func derive(sec Secret) (*Keys, error) {
	k := &Keys{Number: sec.Number}
	key := func(text string) ([]byte, error) {
		return hkdf.Key(sha256.New, sec.Bytes, nil, text+string([]byte{sec.Number}), 16)
	}
	d, err := key("wyegate transaction 1")
	if err != nil {
		return nil, err
	}
	copy(k.Transaction[:], d)
	if k.Tickets, err = hkdf.Key(sha256.New, sec.Bytes, nil, "wyegate tickets 1", 32); err != nil {
		return nil, err
	}
	for _, b := range []struct {
		text string
		to   *cipher.Block
	}{
		{"wyegate branch 1", &k.Branch},
		{"wyegate tag 1", &k.ToTag},
		{"wyegate token 1", &k.Token},
		{"wyegate mask 1", &k.Mask},
	} {
		raw, err := key(b.text)
		if err != nil {
			return nil, err
		}
		if *b.to, err = aes.NewCipher(raw); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// MACBlocks is the length of what a branch or token MAC runs over.
const MACBlocks = 48

// CBCMAC computes the CBC-MAC of in with c into out. Both live in the caller's own memory, so that nothing is allocated
// behind the cipher's interface.
func CBCMAC(c cipher.Block, out *[16]byte, in *[MACBlocks]byte) {
	clear(out[:])
	for i := 0; i < MACBlocks; i += 16 {
		for j := range out {
			out[j] ^= in[i+j]
		}
		c.Encrypt(out[:], out[:])
	}
}
