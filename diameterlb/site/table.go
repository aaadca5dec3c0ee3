package site

// State of a pair (diameter.md 6.1). "Primary" in the names is the preferred side: `--prefer` may turn the two about.
type State uint8

// The states.
const (
	OnPrimary State = iota
	Connecting
	OnSecondary
	Holding
	Down
)

// String is the word of diameter.md 6.1.
func (s State) String() string {
	return [...]string{"on_primary", "connecting", "on_secondary", "holding", "down"}[min(s, Down)]
}

// event is what moves the table.
type event uint8

const (
	primaryOut event = iota // no usable primary member
	primaryUp
	secondaryUp // CEA with the right identity
	secondaryOut
	holdOver
	revertNow // command
	splitBrain
)

// row is one line of the table.
type row struct {
	from State
	on   event
	to   State
}

// table has one row per line of diameter.md 6.1; a pair that is not listed changes nothing. That a primary member fails
// while another is usable is no event here: policycluster alone decides about it.
var table = [...]row{
	{OnPrimary, primaryOut, Connecting},
	{Connecting, secondaryUp, OnSecondary},
	{Connecting, primaryUp, OnPrimary},
	{OnSecondary, primaryUp, Holding},
	{Holding, primaryOut, OnSecondary},
	{Holding, holdOver, OnPrimary},
	{Holding, secondaryOut, OnPrimary},
	{Holding, revertNow, OnPrimary},
	{OnSecondary, secondaryOut, Down},
	{Down, primaryUp, OnPrimary},
	{Down, secondaryUp, OnSecondary},
	{Holding, splitBrain, OnPrimary},     // the primary wins
	{OnSecondary, splitBrain, OnPrimary}, // it was suspect, and serves all the same
}

func next(s State, on event) (State, bool) {
	for _, r := range table {
		if r.from == s && r.on == on {
			return r.to, true
		}
	}
	return s, false
}
