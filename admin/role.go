package admin

import "fmt"

// Role is what a caller may do.
type Role uint8

// The roles, each with all that the one before may.
const (
	Viewer Role = iota
	Operator
	Administrator
)

// String is the word of the configuration.
func (r Role) String() string { return [...]string{"viewer", "operator", "admin"}[r] }

// ParseRole reads the word of the configuration.
func ParseRole(s string) (Role, error) {
	for r := Viewer; r <= Administrator; r++ {
		if r.String() == s {
			return r, nil
		}
	}
	return Viewer, fmt.Errorf("role %q is none of viewer, operator, admin", s)
}
