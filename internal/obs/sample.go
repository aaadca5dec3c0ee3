package obs

import (
	"fmt"
	"slices"
)

// sampler thins lines of a class evenly: with 0.25 each fourth is written. Errors are never thinned.
type sampler struct {
	share [4]float64 // by hundreds of the status, 1-3
	carry [4]float64
}

func (s *sampler) set(by map[string]float64) error {
	s.share = [4]float64{1, 1, 1, 1}
	for word, share := range by {
		i := slices.Index([]string{"", "status_1xx", "status_2xx", "status_3xx"}, word)
		if i < 1 {
			return fmt.Errorf("access log: sample %q: only status_1xx, status_2xx and status_3xx can be thinned", word)
		}
		if !(share >= 0 && share <= 1) {
			return fmt.Errorf("access log: sample %s: %v is not between 0 and 1", word, share)
		}
		s.share[i] = share
	}
	return nil
}

// keep says whether the record is written. Whatever somebody else than the two sides ended is an error, and so is a
// status from 400 on, or none.
func (s *sampler) keep(r *Record) bool {
	class := r.Code / 100
	if class < 1 || class > 3 || r.Disp[0] != '-' && r.Disp[0] != 'L' {
		return true
	}
	if s.share[class] == 1 {
		return true
	}
	s.carry[class] += s.share[class]
	if s.carry[class] < 1 {
		return false
	}
	s.carry[class]--
	return true
}
