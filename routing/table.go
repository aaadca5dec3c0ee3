package routing

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/buraksezer/consistent"
	"github.com/cespare/xxhash/v2"
)

// ErrHash says that the hash settings cannot be built (WG120).
var ErrHash = errors.New("routing: hash settings cannot be built")

// ErrTag says that two names give one tag, or that a name gives the tag 0 (WG124).
var ErrTag = errors.New("routing: names give one tag")

// Member is a server with what this generation says about it.
type Member struct {
	*Server
	Weight        int // from the file, or overridden by Table.WithWeights; 0: gets nothing new
	Site          string
	SiteRank      int // the lowest rank with a usable server carries the traffic; all equal: all active
	MaxConcurrent int // leases out at once; 0: no limit
	Addresses     []Address

	protos     uint8 // bit 1<<p: has an address for p
	lost       uint8 // bit 1<<p: has one whose name is not resolved
	fileWeight int   // what the file says, also when an override hides it
}

// FileWeight is what the file says, also when an override hides it.
func (m *Member) FileWeight() int { return m.fileWeight }

// Address gives the member's address for a protocol; nil when it has none.
func (m *Member) Address(p Proto) *Address {
	for i := range m.Addresses {
		if m.Addresses[i].Proto == p {
			return &m.Addresses[i]
		}
	}
	return nil
}

func (m *Member) has(p Proto) bool { return m.protos&(1<<p) != 0 }

// HashSettings are the keys of a pool's `hash`. The zero value stands for the defaults.
type HashSettings struct {
	Partitions int     // 65,521
	Replicas   int     // points per virtual member on the ring: 400
	Load       float64 // most partitions of one virtual member over the mean: 1.10
}

// DefaultHash are the settings that decisions.md measured.
var DefaultHash = HashSettings{Partitions: 65521, Replicas: 400, Load: 1.10}

func (h HashSettings) filled() HashSettings {
	if h.Partitions == 0 {
		h.Partitions = DefaultHash.Partitions
	}
	if h.Replicas == 0 {
		h.Replicas = DefaultHash.Replicas
	}
	if h.Load == 0 {
		h.Load = DefaultHash.Load
	}
	return h
}

// check refuses what consistent.New would panic at, or take minutes for.
func (h HashSettings) check(virtual int) error {
	switch {
	case h.Partitions < 1 || h.Partitions > 1<<20:
		return fmt.Errorf("%w: partitions must be 1 to %d, is %d", ErrHash, 1<<20, h.Partitions)
	case h.Replicas < 1 || h.Replicas > 10000:
		return fmt.Errorf("%w: replicas must be 1 to 10000, is %d", ErrHash, h.Replicas)
	case !(h.Load >= 1 && h.Load <= 1000):
		return fmt.Errorf("%w: load must be 1 to 1000, is %g", ErrHash, h.Load)
	case virtual > h.Partitions:
		return fmt.Errorf("%w: %d servers by weight need as many partitions, there are %d", ErrHash, virtual, h.Partitions)
	}
	return nil
}

// Table is immutable: owner and further choices of each partition, for each site rank. The same members in any order
// of lines and on any node give the same table.
type Table struct {
	Members []Member // sorted by name

	hash  HashSettings
	byTag map[uint32]uint16
	ranks []rankTable // lowest rank first
}

// rankTable is the table over the members of one site rank.
type rankTable struct {
	rank    int
	members []uint16 // indices of the members of this rank
	row     int      // stored choices per partition
	stored  []uint16 // partition*row: owner, then the first further choices
	seeds   []uint64 // of the rendezvous, by place in members
	virtual []int    // virtual members, by place in members; 0: gets nothing new
	round   []uint16 // one round of round robin, indices of members
	owned   []int    // partitions, by place in members
}

// maxStored is how many choices of a partition are laid out; what comes after them is worked out when asked for.
const maxStored = 8

// maxMembers bounds the table: an index has 16 bits.
const maxMembers = 1 << 15

// NewTable builds the table over the configured members, whatever their state. It reads members and keeps nothing of
// the slice. Errors are ErrHash (WG120), ErrTag (WG124), or say that a name is there twice.
func NewTable(members []Member, h HashSettings) (*Table, error) {
	return build(fromFile(members), h, nil)
}

// fromFile copies the members of a file and notes what it says about their weights.
func fromFile(members []Member) []Member {
	members = slices.Clone(members)
	for i := range members {
		members[i].fileWeight = members[i].Weight
	}
	return members
}

// build makes a table that owns the slice. The map of was, which may be nil, is taken over when it is the same.
func build(members []Member, h HashSettings, was *Table) (*Table, error) {
	if len(members) > maxMembers {
		return nil, fmt.Errorf("%w: more than %d servers", ErrHash, maxMembers)
	}
	t := &Table{Members: members, hash: h.filled(), byTag: make(map[uint32]uint16, len(members))}
	slices.SortFunc(t.Members, func(a, b Member) int { return cmp.Compare(a.Name, b.Name) })
	for i := range t.Members {
		m := &t.Members[i]
		if other, ok := t.byTag[m.Tag]; ok {
			return nil, fmt.Errorf("%w: %q and %q", ErrTag, t.Members[other].Name, m.Name)
		}
		if m.Tag == 0 {
			return nil, fmt.Errorf("%w: %q gives 0", ErrTag, m.Name)
		}
		if m.Weight < 0 {
			return nil, fmt.Errorf("routing: weight of %q must not be negative, is %d", m.Name, m.Weight)
		}
		t.byTag[m.Tag] = uint16(i)
		m.reach()
	}
	if was.sameMap(t) {
		t.ranks = was.ranks
		return t, nil
	}
	if err := t.buildRanks(); err != nil {
		return nil, err
	}
	return t, nil
}

func (t *Table) buildRanks() error {
	byRank := map[int][]uint16{}
	for i := range t.Members {
		byRank[t.Members[i].SiteRank] = append(byRank[t.Members[i].SiteRank], uint16(i))
	}
	if len(byRank) > 1<<8 {
		return fmt.Errorf("%w: more than %d site ranks", ErrHash, 1<<8)
	}
	for rank, members := range byRank {
		rt := rankTable{rank: rank, members: members}
		if err := rt.build(t); err != nil {
			return err
		}
		t.ranks = append(t.ranks, rt)
	}
	slices.SortFunc(t.ranks, func(a, b rankTable) int { return cmp.Compare(a.rank, b.rank) })
	return nil
}

// build asks the library for the owners and adds each partition's own order of further choices.
func (rt *rankTable) build(t *Table) error {
	weights := make([]int, len(rt.members))
	rt.seeds = make([]uint64, len(rt.members))
	rt.owned = make([]int, len(rt.members))
	for i, m := range rt.members {
		weights[i] = t.Members[m].Weight
		rt.seeds[i] = xxhash.Sum64String(t.Members[m].Name)
	}
	rt.virtual = reduce(weights, maxVirtual)
	virtual, weighty := 0, 0
	for _, v := range rt.virtual {
		virtual += v
		if v > 0 {
			weighty++
		}
	}
	if err := t.hash.check(virtual); err != nil {
		return err
	}
	if virtual == 0 {
		return nil
	}
	rt.round = smooth(reduce(weights, maxTurns))
	for i, place := range rt.round {
		rt.round[i] = rt.members[place]
	}
	owners := rt.owners(t, virtual)
	rt.row = min(maxStored, weighty)
	rt.stored = make([]uint16, t.hash.Partitions*rt.row)
	for p, place := range owners {
		rt.owned[place]++
		rt.order(uint64(p), int(place), rt.stored[p*rt.row:][:rt.row])
	}
	return nil
}

// owners builds the ring and reads it out: the place in members of each partition's owner.
func (rt *rankTable) owners(t *Table, virtual int) []uint16 {
	nodes := make([]consistent.Member, 0, virtual)
	for place, n := range rt.virtual {
		name := t.Members[rt.members[place]].Name
		for k := range n {
			nodes = append(nodes, node{name: virtualName(name, k), place: uint16(place)})
		}
	}
	ring := consistent.New(nodes, consistent.Config{
		Hasher: xx{}, PartitionCount: t.hash.Partitions, ReplicationFactor: t.hash.Replicas, Load: t.hash.Load,
	})
	owners := make([]uint16, t.hash.Partitions)
	for p := range owners {
		owners[p] = ring.GetPartitionOwner(p).(node).place
	}
	return owners
}

// virtualName of the first virtual member is the server's name, so that equal weights and no weights are one table.
// The others end in a control character and a number, which no name of a configuration does.
func virtualName(name string, k int) string {
	if k == 0 {
		return name
	}
	return name + "\x00" + strconv.Itoa(k)
}

// node is a virtual member of the ring.
type node struct {
	name  string
	place uint16
}

func (n node) String() string { return n.name }

// xx is the hash that all nodes agree on.
type xx struct{}

func (xx) Sum64(b []byte) uint64 { return xxhash.Sum64(b) }

// Partition of a hash (dcr.md 5.8).
func (t *Table) Partition(hash uint64) int { return int(hash % uint64(t.hash.Partitions)) }

// Hash gives the settings the table was built with.
func (t *Table) Hash() HashSettings { return t.hash }

// ByTag gives the member of a tag; nil when the table has none.
func (t *Table) ByTag(tag uint32) *Member {
	if i, ok := t.byTag[tag]; ok {
		return &t.Members[i]
	}
	return nil
}

// ByName gives the member of a name; nil when the table has none.
func (t *Table) ByName(name string) *Member {
	i, ok := slices.BinarySearchFunc(t.Members, name, func(m Member, n string) int { return cmp.Compare(m.Name, n) })
	if !ok {
		return nil
	}
	return &t.Members[i]
}

// Partitions is the number of partitions that the member of that name owns within its site rank.
func (t *Table) Partitions(name string) int {
	for r := range t.ranks {
		for place, m := range t.ranks[r].members {
			if t.Members[m].Name == name {
				return t.ranks[r].owned[place]
			}
		}
	}
	return 0
}

// WeightRatio is the member's share of the pool's weight, 0 to 1.
func (t *Table) WeightRatio(name string) float64 {
	sum, own := 0, 0
	for i := range t.Members {
		sum += t.Members[i].Weight
		if t.Members[i].Name == name {
			own = t.Members[i].Weight
		}
	}
	if sum == 0 {
		return 0
	}
	return float64(own) / float64(sum)
}

// Digest sums up the whole map: equal digests choose equally.
func (t *Table) Digest() uint64 {
	d := xxhash.New()
	var b [2]byte
	for r := range t.ranks {
		for _, m := range t.ranks[r].stored {
			binary.LittleEndian.PutUint16(b[:], m)
			_, _ = d.Write(b[:])
		}
	}
	for i := range t.Members {
		_, _ = d.WriteString(t.Members[i].Name + "\x00")
	}
	return d.Sum64()
}

// WithWeights builds the table anew with the operator's weights; members that the map does not name go back to what
// the file says. It is how an override changes weights within a generation (operations.md 4.1).
func (t *Table) WithWeights(override map[string]int) (*Table, error) {
	members := slices.Clone(t.Members)
	same := true
	for i := range members {
		m := &members[i]
		w, ok := override[m.Name]
		if !ok {
			w = m.fileWeight
		}
		same = same && w == m.Weight
		m.Weight = w
	}
	if same {
		return t, nil
	}
	return build(members, t.hash, t)
}

// WithAddresses gives the table with other addresses of the members that find knows: names that were resolved anew.
// The map of keys is the same, so it is taken over and not built again.
func (t *Table) WithAddresses(find func(m *Member) []Address) *Table {
	next := *t
	next.Members = slices.Clone(t.Members)
	for i := range next.Members {
		m := &next.Members[i]
		if list := find(m); list != nil {
			m.Addresses = list
			m.reach()
		}
	}
	return &next
}

// reach notes which protocols there is an address for. A name that is not resolved yet is no way to the server.
func (m *Member) reach() {
	m.protos, m.lost = 0, 0
	for _, a := range m.Addresses {
		if a.Addr.IsValid() {
			m.protos |= 1 << a.Proto
		} else {
			m.lost |= 1 << a.Proto
		}
	}
	m.lost &^= m.protos
}
