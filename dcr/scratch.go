package dcr

// Scratch is the memory one worker evaluates in: the request index, memo arrays and the buffer for values that differ
// from the received bytes. It grows to what the rule sets of its worker need and stays there.
type Scratch struct {
	Req Request
}
