package certs

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"slices"
	"sync"
	"time"
)

// tickets seals and opens session tickets for all listeners. The keys follow from the secrets and the day in UTC: nodes
// that share the secrets open each other's tickets, and a key that leaks opens two days' at most. Yesterday's is kept for
// clients that come back over midnight, tomorrow's for nodes whose clocks run ahead.
type tickets struct {
	sealer *tls.Config // holds nothing but the keys

	mu      sync.Mutex
	secrets [][]byte // guarded by mu
}

func (t *tickets) init(now time.Time) {
	own := make([]byte, 32)
	_, _ = rand.Read(own) // it never fails
	t.secrets, t.sealer = [][]byte{own}, &tls.Config{}
	t.rotate(now)
}

// change derives from other secrets; none: from those before.
func (t *tickets) change(secrets [][]byte, now time.Time) {
	t.mu.Lock()
	if len(secrets) > 0 {
		t.secrets = secrets
	}
	t.mu.Unlock()
	t.rotate(now)
}

// rotate puts the keys of the day in force.
func (t *tickets) rotate(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sealer.SetSessionTicketKeys(t.keys(now))
}

// keys, with mu held, gives the first secret's key of today first: that one seals.
func (t *tickets) keys(now time.Time) [][32]byte {
	var out [][32]byte
	for _, days := range []int{0, -1, 1} {
		for _, secret := range t.secrets {
			mac := hmac.New(sha256.New, secret)
			mac.Write([]byte("wyegate tls tickets " + now.UTC().AddDate(0, 0, days).Format(time.DateOnly)))
			out = append(out, [32]byte(mac.Sum(nil)))
		}
	}
	return out
}

// untilMidnight is how long the keys of now are those of the day.
func untilMidnight(now time.Time) time.Duration {
	now = now.UTC()
	return now.Truncate(24*time.Hour).Add(24*time.Hour).Sub(now) + time.Second
}

// use lets settings seal with the keys in force. id stands for what a listener asks of clients: a ticket of a listener
// that asks for less is no way into one that asks for more.
func (t *tickets) use(c *tls.Config, id string) {
	mark := []byte(id)
	c.WrapSession = func(cs tls.ConnectionState, ss *tls.SessionState) ([]byte, error) {
		if !marked(ss, mark) {
			ss.Extra = append(slices.Clone(ss.Extra), mark)
		}
		return t.sealer.EncryptTicket(cs, ss)
	}
	c.UnwrapSession = func(identity []byte, cs tls.ConnectionState) (*tls.SessionState, error) {
		ss, err := t.sealer.DecryptTicket(identity, cs)
		if err != nil || ss == nil {
			return nil, err
		}
		if !marked(ss, mark) {
			return nil, nil // a whole handshake instead
		}
		return ss, nil
	}
}

func marked(ss *tls.SessionState, mark []byte) bool {
	return slices.ContainsFunc(ss.Extra, func(b []byte) bool { return bytes.Equal(b, mark) })
}
