package sip

// Error says what is wrong with a message and which status its sender is owed (400, 414, 416, 420, 483, 505, 513).
type Error struct {
	Status int
	Reason string // reason phrase of the answer
	Text   string // for explain and the log
	Close  bool   // the stream it came on cannot be framed any further
}

func (e *Error) Error() string { return "sip: " + e.Text }
