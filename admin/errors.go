package admin

import (
	"errors"
	"fmt"
)

// What a Node answers when it does not do what was asked. Wrap them with the reason.
var (
	ErrNotFound = errors.New("not found")           // 404
	ErrInvalid  = errors.New("not valid")           // 400
	ErrGuard    = errors.New("refused by a guard")  // 409; force does it
	ErrChanged  = errors.New("changed meanwhile")   // 412
	ErrBusy     = errors.New("another one is open") // 409: an apply still waits for its confirmation
	ErrMissing  = errors.New("not in this build")   // 501
)

// Refused is a configuration or rule file with mistakes: 422 with the list.
type Refused struct{ Findings []Finding }

// Error gives the first finding and how many there are.
func (r *Refused) Error() string {
	if len(r.Findings) == 0 {
		return "refused"
	}
	f := r.Findings[0]
	if f.File == "" {
		return fmt.Sprintf("refused: %s: %s (%d in all)", f.Code, f.Text, len(r.Findings))
	}
	return fmt.Sprintf("refused: %s:%d:%d: %s: %s (%d in all)", f.File, f.Line, f.Col, f.Code, f.Text, len(r.Findings))
}
