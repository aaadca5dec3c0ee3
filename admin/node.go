package admin

import (
	"context"
	"time"

	"github.com/wyegate/wyegate/internal/obs"
	"github.com/wyegate/wyegate/proxy"
)

// Explanation says where a message goes and why.
type Explanation = proxy.Explanation

// Node is what the API asks of the process. All methods may be called at the same time. Errors are those of errors.go,
// or unexpected.
type Node interface {
	Status() Status
	// Ready says why the node is not ready; nil when it is.
	Ready() error
	Pools() []Pool
	Servers() []Server
	Listeners() []Listener

	// Explain says where a message would go, by the running generation.
	Explain(context.Context, ExplainRequest) (*Explanation, error)
	// Where says which server has a key. Pool or service may be empty: then the first pool that is hashed.
	Where(key, pool, service string) (KeyPlace, error)
	// Spread gives each server's part of the tables; sample is how many invented keys are counted beside, 0: none.
	Spread(sample int) ([]Share, error)
	// Live lists keys with live dialogs or sessions, at most limit; server may be empty.
	Live(server string, limit int) ([]LiveKey, error)

	// Change previews a change of a server and, without DryRun, does it.
	Change(context.Context, Change) (Preview, error)
	// Drain is the progress of a server's drain; ErrNotFound when it does not drain.
	Drain(pool, server string) (Drain, error)
	Overrides() []Override
	// ClearOverrides returns to the file; pool and server may be empty: all. It gives what is, or would be, cleared.
	ClearOverrides(c Caller, pool, server string, dryRun bool) ([]Override, error)

	// Config gives a generation's text.
	Config(ConfigView) (ConfigText, error)
	// Diff compares two configurations: a generation's number, "running" or "file". Empty text: no difference.
	Diff(from, to string) (string, error)
	Apply(context.Context, Apply) (Applied, error)
	// Confirm keeps the generation that waits for it.
	Confirm(Caller) (Applied, error)
	History() []Generation

	Events() *obs.Events
}

// Caller is who asks for a change: for the audit.
type Caller struct {
	By   string // user of the socket's peer
	Role Role
	Note string
}

// ExplainRequest names a message, or a key (operations.md 6). Exactly one of SIP, HTTP and Key is set.
type ExplainRequest struct {
	Listener   string   `json:"listener,omitempty"`
	Source     string   `json:"source,omitempty"` // "198.51.100.9:51515"
	SIP        string   `json:"sip,omitempty"`    // a message; bare LF may stand for CRLF
	HTTP       string   `json:"http,omitempty"`   // "GET https://host/path", or a whole request
	Key        string   `json:"key,omitempty"`
	Service    string   `json:"service,omitempty"`
	IfDown     []string `json:"if_down,omitempty"`
	IfSiteDown string   `json:"if_site_down,omitempty"`
	Rules      string   `json:"rules,omitempty"` // candidate rule file, whole
}

// Change is what an operator wants of one server.
type Change struct {
	Caller
	Pool, Server string
	AdminState   string         // ready, drain, maint; empty: as it is
	Weight       *int           // nil: as it is
	Deadline     *time.Duration // of a drain; nil: the pool's
	AtDeadline   string         // wait, move, cancel; empty: the pool's
	Force        bool           // past a guard
	DryRun       bool
}

// Apply is a new configuration, new rules of one service, or an old generation once more.
type Apply struct {
	Caller
	Path       string // of a file on this host; empty: the file the node was started with
	Text       string // one file, instead of Path
	Service    string // with Rules: only the rule file of this service changes
	Rules      string
	Rollback   bool
	Generation uint64        // with Rollback; 0: the last confirmed before this one
	Confirm    time.Duration // undone after this time unless confirmed; 0: confirmed at once
	IfCurrent  uint64        // only if this generation runs; 0: whatever runs
	MoveConns  bool          // connections go over to the new rules by ageing
	Force      bool
	DryRun     bool
}

// ConfigView says which text is wanted.
type ConfigView struct {
	Generation uint64 // 0: the running one
	Defaults   bool   // every key written out
	Effective  bool   // with overrides
	Service    string // the rule file of this service instead
}
