package routing

import "sync/atomic"

// State keeps intent and observation apart; what traffic asks is derived from both (sip-http.md section 10).
//
//	admin \ health   Unknown         Up              Busy         Down
//	Ready            new and known   new and known   known only   –
//	Drain            known only      known only      known only   –
//	Maint            –               –               –            –
//
// "Known" belongs to this server already: by token, by transaction memory, by cookie. A drain whose deadline passed
// with at_deadline "move" takes nothing, like Down.
type State struct {
	admin  atomic.Uint32
	health [numProtos]atomic.Uint32
}

// word is one protocol's health with what passive health adds to it.
//
//	bits 0-1  what probes say
//	bit 2     ejected: down, whatever probes said before
//	bit 3     its last connect was refused: not even panic sends it traffic
//	bit 4     held: it asked for a rest by Retry-After, no new traffic
type word uint32

const (
	healthBits word = 3
	ejected    word = 1 << 2
	refused    word = 1 << 3
	held       word = 1 << 4

	adminBits  uint32 = 3
	adminMoves uint32 = 1 << 2 // drain deadline passed, at_deadline "move"
)

// health is what the word comes to.
func (w word) health() Health {
	if w&ejected != 0 {
		return Down
	}
	h := Health(w & healthBits)
	if w&held != 0 && h <= Up {
		return Busy
	}
	return h
}

// worseThan says that the server was taken out: it is down and was not, or it begins a rest.
func (w word) worseThan(old word) bool {
	return w.health() == Down && old.health() != Down || w&held != 0 && old&held == 0
}

// worse joins the words of two addresses for scope "server": usable only if both are.
func (w word) worse(o word) word {
	a, b := Health(w&healthBits), Health(o&healthBits)
	h := Up
	switch {
	case a == Down || b == Down:
		h = Down
	case a == Busy || b == Busy:
		h = Busy
	case a == Unknown || b == Unknown:
		h = Unknown
	}
	return word(h) | (w|o)&^healthBits
}

func (s *State) word(p Proto) word { return word(s.health[p].Load()) }

// Admin is what the operator wants.
func (s *State) Admin() Admin { return Admin(s.admin.Load() & adminBits) }

// Moves says that the drain's deadline passed and known traffic leaves too.
func (s *State) Moves() bool { return s.admin.Load()&adminMoves != 0 }

// Health is what was observed by that protocol: probes, ejection and Retry-After together.
func (s *State) Health(p Proto) Health { return s.word(p).health() }

// Word is the health as metrics show it: unknown, up, down, draining, ejected.
func (s *State) Word(p Proto) string {
	w := s.word(p)
	if w&ejected != 0 {
		return "ejected"
	}
	return w.health().String()
}

// Refused says that the last connect by that protocol was refused.
func (s *State) Refused(p Proto) bool { return s.word(p)&refused != 0 }

// OutByTraffic says that traffic took the server out by that protocol: it is ejected, or its last connect was refused.
func (s *State) OutByTraffic(p Proto) bool { return s.word(p)&(ejected|refused) != 0 }

// AcceptsNew answers for a message that nobody has placed yet, by one protocol alone; Pool.Usable knows the scope.
func (s *State) AcceptsNew(p Proto) bool {
	return s.admin.Load() == uint32(Ready) && s.word(p).health() <= Up
}

// TakesKnown answers for a message that belongs to this server already, by one protocol alone.
func (s *State) TakesKnown(p Proto) bool {
	return takesKnown(s.admin.Load()) && s.word(p).health() != Down
}

func takesKnown(admin uint32) bool { return admin == uint32(Ready) || admin == uint32(Drain) }
