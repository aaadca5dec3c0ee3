package obs

// Ring carries finished records from one worker to the access log: one writer, one reader, no lock. A nil Ring takes
// nothing: the access log is off.
type Ring struct{}

// Put copies a finished record into the ring. A full ring drops it and counts.
func (r *Ring) Put(rec *Record) {}

// Enabled says whether records are wanted; false on nil.
func (r *Ring) Enabled() bool { return r != nil }
