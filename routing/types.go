package routing

import (
	"net/netip"
	"sync/atomic"
	"time"
)

// Admin is what the operator wants of a server.
type Admin uint32

// The words of operations.md 8.1.
const (
	Ready Admin = iota
	Drain
	Maint
)

// Health is what was observed of a server.
type Health uint32

// Busy is up but wants no new traffic (shown as draining); an ejected server is Down with a reason.
const (
	Unknown Health = iota
	Up
	Busy
	Down
)

// Address is one way to a member.
type Address struct {
	Proto     Proto
	Transport string         // "udp", "tcp", "tls", "ws", "wss" for SIP; "tcp", "tls" for HTTP
	Addr      netip.AddrPort // resolved
	Host      string         // as configured, for names and TLS
}

// Server outlives generations: name, states and counts of one server of one pool.
type Server struct {
	Name string
	Pool string
	Tag  uint32 // low 32 bits of xxhash64 of Name
	State

	active atomic.Int64
}

// State keeps intent and observation apart; what traffic asks is derived from both (sip-http.md section 10).
//
//	admin \ health   Unknown         Up              Busy         Down
//	Ready            new and known   new and known   known only   –
//	Drain            known only      known only      known only   –
//	Maint            –               –               –            –
type State struct {
	admin  atomic.Uint32
	health [numProtos]atomic.Uint32
}

// Member is a server with what this generation says about it.
type Member struct {
	*Server
	Weight    int // from the file, or overridden
	SiteRank  int
	Addresses []Address
}

// Address gives the member's address for a protocol; nil when it has none.
func (m *Member) Address(p Proto) *Address {
	for i := range m.Addresses {
		if m.Addresses[i].Proto == p {
			return &m.Addresses[i]
		}
	}
	return nil
}

// Registry is what outlives generations, by pool and name.
type Registry struct{}

// Server gives the server of that pool and name, made on first use.
func (r *Registry) Server(pool, name string) *Server { return nil }

// Pool hands out leases over its current table.
type Pool struct {
	Name  string
	table atomic.Pointer[Table]
}

// Table is immutable: owner and further choices of each of 65,521 partitions.
type Table struct {
	Members []Member // sorted by name
}

// Table gives the current table.
func (p *Pool) Table() *Table { return p.table.Load() }

// Acquire takes a server. Avoid in the request makes failover the same call once more. The lease must be given back
// with Done.
func (p *Pool) Acquire(r *Request) (Lease, error) { return Lease{}, ErrNoServer }

// Lease is one message, transaction or connection counted on a member.
type Lease struct {
	Member *Member
	How    How
}

// Done gives the lease back and feeds passive health; a second call does nothing.
func (l *Lease) Done(o Outcome) {}

// Bind notes one more live dialog or session of the key on the member's server (operations.md 11, trap 3), Unbind one
// less. They are called when a session begins and ends, never per message.
func (p *Pool) Bind(hash uint64, tag uint32, now time.Time) {}

// Unbind ends what Bind began.
func (p *Pool) Unbind(hash uint64, tag uint32, now time.Time) {}
