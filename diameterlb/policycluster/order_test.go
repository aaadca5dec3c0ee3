package policycluster

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/wyegate/wyegate/internal/resolver"
)

func target(prio, weight uint16, last byte) resolver.Target {
	return resolver.Target{
		Host: "ps" + string('0'+last), Priority: prio, Weight: weight, Addrs: []netip.Addr{netip.AddrFrom4([4]byte{10, 0, 0, last})},
	}
}

// chiSquare compares counts with expected ones.
func chiSquare(got []int, want []float64) float64 {
	sum := 0.0
	for i, n := range got {
		sum += math.Pow(float64(n)-want[i], 2) / want[i]
	}
	return sum
}

// 15.3 scenario 1: weights within a priority over 10,000 draws; 60, 30 and 10 % come first.
func TestWeightsDecideWithinAPriority(t *testing.T) {
	first := make([]int, 3)
	second := make([]int, 3)
	r := rand.New(rand.NewPCG(1, 2))
	const draws = 10_000
	for range draws {
		list := []server{{weight: 60, target: "0"}, {weight: 30, target: "1"}, {weight: 10, target: "2"}}
		draw(list, r)
		first[list[0].target[0]-'0']++
		second[list[1].target[0]-'0']++
	}
	// RFC 2782 draws from 0 to the sum inclusive, so the first of the list is a little likelier: bound of 0.1 % at 2
	// degrees of freedom, 13.8, with room for that.
	if x := chiSquare(first, []float64{6000, 3000, 1000}); x > 25 {
		t.Errorf("first places %v: chi square %.1f", first, x)
	}
	// P(second = i) = sum over j≠i of P(j first) * w_i / (100 - w_j)
	want := []float64{
		draws * (0.3*60/70 + 0.1*60/90), draws * (0.6*30/40 + 0.1*30/90), draws * (0.6*10/40 + 0.3*10/70),
	}
	if x := chiSquare(second, want); x > 25 {
		t.Errorf("second places %v, want %v: chi square %.1f", second, want, x)
	}
}

// RFC 2782: weight 0 has a very small chance beside others, and all of weight 0 are equal.
func TestWeightZero(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	zero, first := 0, make([]int, 3)
	for range 3000 {
		list := []server{{weight: 0}, {weight: 200}}
		draw(list, r)
		if list[0].weight == 0 {
			zero++
		}
		equal := []server{{target: "0"}, {target: "1"}, {target: "2"}}
		draw(equal, r)
		first[equal[0].target[0]-'0']++
	}
	if zero == 0 || zero > 60 {
		t.Errorf("weight 0 beside 200 was first %d times of 3000, want about 15", zero)
	}
	if x := chiSquare(first, []float64{1000, 1000, 1000}); x > 13.8 {
		t.Errorf("weights of 0 are not equal: %v", first)
	}
}

// The same set twice gives the same order, whatever order DNS gives it in; another node may have another.
func TestDrawIsMadeOncePerSet(t *testing.T) {
	set := resolver.Set{SRV: true, TTL: time.Minute}
	for i := range byte(8) {
		set.Targets = append(set.Targets, target(10, 10, i+1))
	}
	c := Config{Name: "pcrf", Seed: 7}
	a := c.servers(set)
	for i, j := 0, len(set.Targets)-1; i < j; i, j = i+1, j-1 {
		set.Targets[i], set.Targets[j] = set.Targets[j], set.Targets[i]
	}
	b := c.servers(set)
	other := (&Config{Name: "pcrf", Seed: 8}).servers(set)
	same := true
	for i := range a {
		if a[i].target != b[i].target {
			t.Fatalf("rank %d: %s, then %s", i+1, a[i].target, b[i].target)
		}
		same = same && a[i].target == other[i].target
	}
	if same {
		t.Error("another node has the same order of 8 equal servers")
	}
}

// Priorities come first, weights never cross them (15.3 scenario 1: 3 priorities, 2 weights each).
func TestPriorityBeforeWeight(t *testing.T) {
	set := resolver.Set{SRV: true, Targets: []resolver.Target{
		target(30, 900, 5), target(10, 1, 1), target(20, 500, 3), target(10, 2, 2), target(30, 1, 6), target(20, 1, 4),
	}}
	for seed := range uint64(200) {
		list := (&Config{Name: "pcrf", Seed: seed}).servers(set)
		for i, s := range list {
			if int(s.priority) != (i/2+1)*10 {
				t.Fatalf("seed %d: rank %d has priority %d", seed, i+1, s.priority)
			}
		}
	}
}

// 15.3 scenario 11: N of M uniform.
func TestRandomPickIsUniform(t *testing.T) {
	counts := make([]int, 6)
	for seed := range uint64(3000) {
		c := New(Config{Name: "psx", Selection: Random, MaxConnections: 2, Seed: seed}, nil)
		for i := range byte(6) {
			c.names.servers = append(c.names.servers, server{addrs: []netip.AddrPort{
				netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, i}), 3868),
			}})
		}
		c.fill("", time.Now())
		if len(c.slots) != 2 || c.slots[0].Address() == c.slots[1].Address() {
			t.Fatalf("picked %d", len(c.slots))
		}
		for _, s := range c.slots {
			counts[s.Address().Addr().As4()[3]]++
		}
	}
	if x := chiSquare(counts, []float64{1000, 1000, 1000, 1000, 1000, 1000}); x > 20.5 { // 0.1 % at 5 degrees of freedom
		t.Errorf("picks %v: chi square %.1f", counts, x)
	}
}

func TestPortOfDNSAndConfiguration(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		dns  uint16
		want uint16
	}{
		{Config{}, 0, 3868},
		{Config{}, 3999, 3999},
		{Config{Port: 4000}, 3999, 3999}, // port_override: never
		{Config{Port: 4000}, 0, 4000},
		{Config{Port: 4000, PortAlways: true}, 3999, 4000},
	} {
		if got := c.cfg.port(c.dns); got != c.want {
			t.Errorf("%+v with DNS %d: %d, want %d", c.cfg, c.dns, got, c.want)
		}
	}
}
