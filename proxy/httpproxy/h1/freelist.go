package h1

// freeSlots is how many unused things a free list keeps; the rest is left to the collector.
const freeSlots = 512

// freeList keeps what connections use for one request and then do without. Last in, first out: what is taken next is
// what the cache still has, and no more is kept than was in use at once. It has no lock.
type freeList[T any] struct {
	items       [freeSlots]*T // each owned by whoever popped its number
	full, empty stack
}

func (l *freeList[T]) init() {
	l.full, l.empty = newStack(freeSlots), newStack(freeSlots)
	for i := range freeSlots {
		l.empty.push(i)
	}
}

// get gives nil when there is none.
func (l *freeList[T]) get() *T {
	i, ok := l.full.pop()
	if !ok {
		return nil
	}
	t := l.items[i]
	l.items[i] = nil
	l.empty.push(i)
	return t
}

// put says whether there was a place.
func (l *freeList[T]) put(t *T) bool {
	i, ok := l.empty.pop()
	if !ok {
		return false
	}
	l.items[i] = t
	l.full.push(i)
	return true
}
