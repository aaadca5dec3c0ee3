package admin

import (
	"strings"
	"time"
)

// Status is one screen's data.
type Status struct {
	Node            string     `json:"node"`
	Version         string     `json:"version"`
	StartedAt       time.Time  `json:"started_at"`
	UptimeSeconds   float64    `json:"uptime_seconds"`
	Ready           bool       `json:"ready"`
	NotReady        string     `json:"not_ready,omitempty"`
	Draining        bool       `json:"draining"` // this node is shutting down
	Generation      uint64     `json:"generation"`
	GenerationState string     `json:"generation_state"` // confirmed, unconfirmed
	UndoneAt        *time.Time `json:"undone_at,omitempty"`
	Digest          string     `json:"digest"`
	FileDiffers     bool       `json:"file_differs"` // the file is not what runs
	Reloads         Reloads    `json:"reloads"`
	Sites           []Site     `json:"sites"`
	SIPPerSecond    float64    `json:"sip_requests_per_second"`
	HTTPPerSecond   float64    `json:"http_requests_per_second"`
	Websockets      int        `json:"websockets"`
	KeysByRule      float64    `json:"keys_by_rule_ratio"`
	KeysByDefault   float64    `json:"keys_by_default_ratio"`
	Pools           []Pool     `json:"pools"`
	Warnings        []Warning  `json:"warnings"`
	HiddenByFile    []Override `json:"overrides_hiding_file"` // overrides that hide a changed file value
}

// Reloads is what came of the configurations that were offered since the start.
type Reloads struct {
	Taken   uint64 `json:"taken"`
	Refused uint64 `json:"refused"`
	LastOK  bool   `json:"last_successful"`
}

// Site is one site.
type Site struct {
	Site    string `json:"site"`
	Rank    int    `json:"rank"`
	Serving bool   `json:"serving"`
}

// Warning is a condition that somebody should look at.
type Warning struct {
	Code  string     `json:"code,omitempty"` // of a finding, or the name of an event
	Text  string     `json:"text"`
	Since *time.Time `json:"since,omitempty"`
}

// Version is what was built.
type Version struct {
	Version   string `json:"version"`
	Revision  string `json:"revision"`
	GoVersion string `json:"go_version"`
}

// Pool is one pool.
type Pool struct {
	Pool        string  `json:"pool"`
	Servers     int     `json:"servers"`
	Usable      int     `json:"usable"`
	UsableRatio float64 `json:"usable_ratio"` // of the weight
	Panic       bool    `json:"panic"`
	ETag        string  `json:"etag"`
}

// Server is one server of a pool, with the three kinds of state apart (operations.md 4.1).
type Server struct {
	Pool          string             `json:"pool"`
	Server        string             `json:"server"`
	Site          string             `json:"site,omitempty"`
	State         string             `json:"state"`  // the worst of the three with its origin; filled by Describe
	Usable        bool               `json:"usable"` // gets new traffic
	Standby       bool               `json:"standby_site"`
	AdminState    Setting[string]    `json:"admin_state"`
	Weight        Setting[int]       `json:"weight"`
	Health        map[string]Health  `json:"health"`    // by protocol
	Addresses     map[string]Address `json:"addresses"` // by protocol
	SlowStart     float64            `json:"slow_start_ratio"`
	Partitions    int                `json:"partitions"`
	KeysPerSecond float64            `json:"keys_per_second"`
	Dialogs       int                `json:"dialogs"`
	Sessions      int                `json:"sessions"`
	Websockets    int                `json:"websockets"`
	P95           *float64           `json:"p95_ms"`
	Since         time.Time          `json:"since,omitzero"` // of the state
	Drain         *Drain             `json:"drain,omitempty"`
	Note          string             `json:"note,omitempty"`
	ETag          string             `json:"etag"` // changes with admin state, weight and deadline; filled by Describe
}

// Setting is a value of the file and what an operator put over it.
type Setting[T any] struct {
	File      T  `json:"file"`
	Override  *T `json:"override,omitempty"`
	Effective T  `json:"effective"`
}

// Health is what was observed of one address.
type Health struct {
	State string    `json:"state"`           // unknown, up, down, draining, ejected
	Cause string    `json:"cause,omitempty"` // "503×4", "connection refused"
	Since time.Time `json:"since,omitzero"`
	Last  string    `json:"last_answer,omitempty"` // of a probe, and whether it counted
}

// Address is where a server is reached.
type Address struct {
	Transport string `json:"transport"`
	Address   string `json:"address"`
	Resolved  string `json:"resolved,omitempty"` // of a name
	Stale     bool   `json:"stale,omitempty"`    // the last good answer of a silent DNS
}

// Describe fills State and ETag from the rest.
func (s *Server) Describe() {
	var parts []string
	switch s.AdminState.Effective {
	case "maint":
		parts = append(parts, "maint (admin)")
	case "drain":
		parts = append(parts, "draining (admin)")
	}
	if p := s.observed(); p != "" {
		parts = append(parts, p)
	}
	if len(parts) == 0 {
		parts = append(parts, "ready")
	}
	s.State = strings.Join(parts, ", ")
	if s.Standby {
		s.State += " (standby site)"
	}
	s.ETag = s.etag()
}

// worst orders what is observed: the worst decides.
var worst = map[string]int{"up": 0, "unknown": 1, "draining": 2, "ejected": 3, "down": 4}

func (s *Server) observed() string {
	var bad Health
	for _, proto := range []string{"sip", "http"} {
		if h, ok := s.Health[proto]; ok && worst[h.State] > worst[bad.State] {
			bad = h
		}
	}
	switch bad.State {
	case "draining":
		return "draining (server asked)"
	case "down", "ejected":
		return strings.TrimSpace(bad.State + " " + bad.Cause)
	case "unknown":
		if s.AdminState.Effective == "ready" || s.AdminState.Effective == "" {
			return "ready (not probed yet)"
		}
	}
	return ""
}

// Drain is the progress of a drain.
type Drain struct {
	Pool       string     `json:"pool"`
	Server     string     `json:"server"`
	By         string     `json:"by"`
	Note       string     `json:"note,omitempty"`
	Since      time.Time  `json:"since"`
	Deadline   *time.Time `json:"deadline,omitempty"`
	AtDeadline string     `json:"at_deadline"` // wait, move, cancel
	NewKeysTo  []string   `json:"new_keys_to"`
	Dialogs    Remaining  `json:"dialogs"`
	Sessions   Remaining  `json:"sessions"`
	Websockets Remaining  `json:"websockets"`
	Closing    float64    `json:"websockets_closed_per_second,omitempty"`
	CloseCode  int        `json:"websocket_close_code,omitempty"`
	Done       bool       `json:"done"`
	Overdue    bool       `json:"overdue"` // the deadline passed and something is left
}

// Remaining is how much of one kind is left.
type Remaining struct {
	Total     int        `json:"total"` // when the drain began
	Left      int        `json:"left"`
	PerMinute float64    `json:"per_minute"`             // that end
	Expected  *time.Time `json:"expected_end,omitempty"` // of the last one
}

// Preview says what a change would do.
type Preview struct {
	Pool           string   `json:"pool"`
	Server         string   `json:"server"`
	From           string   `json:"from"`
	To             string   `json:"to"`
	Dialogs        int      `json:"dialogs"`
	Sessions       int      `json:"sessions"`
	Websockets     int      `json:"websockets"`
	Longest        float64  `json:"longest_dialog_seconds,omitempty"`
	PartitionsMove int      `json:"partitions_moved"`
	Takes          []Share  `json:"takes"` // what the others would have
	Loss           string   `json:"loss,omitempty"`
	Guard          string   `json:"guard,omitempty"` // why it needs force
	Warnings       []string `json:"warnings,omitempty"`
}

// Override is an operator's change that can be removed.
type Override struct {
	Pool     string    `json:"pool"`
	Server   string    `json:"server"`
	What     string    `json:"what"` // weight, state, deadline
	File     string    `json:"file"`
	Override string    `json:"override"`
	By       string    `json:"by"`
	Since    time.Time `json:"since"`
	Note     string    `json:"note,omitempty"`
}

// KeyPlace says which server has a key.
type KeyPlace struct {
	Key       string   `json:"key"`
	Pool      string   `json:"pool"`
	Hash      string   `json:"hash"` // "0xfdea3fc9cc41581c"
	Partition int      `json:"partition"`
	Owner     string   `json:"owner"`
	State     string   `json:"state"`  // of the owner
	Server    string   `json:"server"` // who gets it now
	Then      []string `json:"then"`   // further choices, in order
	Live      *LiveKey `json:"live,omitempty"`
}

// LiveKey is a key with live dialogs or sessions.
type LiveKey struct {
	Hash     string    `json:"hash"` // keys themselves are not kept
	Pool     string    `json:"pool"`
	Server   string    `json:"server"`
	Dialogs  int       `json:"dialogs"`
	Sessions int       `json:"sessions"`
	Since    time.Time `json:"since"`
}

// Share is a server's part of a pool.
type Share struct {
	Pool       string   `json:"pool"`
	Server     string   `json:"server"`
	Partitions int      `json:"partitions"`
	Table      float64  `json:"table_ratio"`
	Weight     float64  `json:"weight_ratio"`
	Sampled    int      `json:"sampled,omitempty"` // invented keys that met the server
	Traffic    *float64 `json:"traffic_ratio,omitempty"`
}

// Listener is one listener.
type Listener struct {
	Listener    string   `json:"listener"`
	Protocol    string   `json:"protocol"`
	Transport   string   `json:"transport"`
	Bind        string   `json:"bind"`    // as it is written
	Address     string   `json:"address"` // as it is bound, with the port that was chosen
	Services    []string `json:"services"`
	Paused      bool     `json:"paused"`
	Connections int      `json:"connections"`
	Accepted    uint64   `json:"accepted"`
	ETag        string   `json:"etag"`
}

// Generation is one entry of the history.
type Generation struct {
	Generation uint64     `json:"generation,omitempty"` // 0: refused
	State      string     `json:"state"`                // active, unconfirmed, confirmed, superseded, refused, reverted
	By         string     `json:"by"`
	When       time.Time  `json:"when"`
	Digest     string     `json:"digest"`
	Note       string     `json:"note,omitempty"`
	Node       string     `json:"node,omitempty"` // that refused it
	UndoneAt   *time.Time `json:"undone_at,omitempty"`
	Findings   []Finding  `json:"errors,omitempty"`
}

// Applied is what an apply did, or with a dry run would do.
type Applied struct {
	Generation uint64     `json:"generation"`
	Digest     string     `json:"digest"`
	State      string     `json:"state"` // active, unconfirmed, unchanged, valid (dry run)
	UndoneAt   *time.Time `json:"undone_at,omitempty"`
	Nodes      int        `json:"nodes"`    // that took it
	Of         int        `json:"of_nodes"` // that should
	Diff       string     `json:"diff,omitempty"`
	Moved      int        `json:"partitions_moved"`
	Warnings   []Finding  `json:"warnings"`
}

// ConfigText is a configuration as text.
type ConfigText struct {
	Generation uint64 `json:"generation"`
	Digest     string `json:"digest"`
	Text       string `json:"text"`
	ETag       string `json:"etag"`
}

// Finding is one mistake with its place; config and dcr have the same fields.
type Finding struct {
	File       string `json:"file"`
	Line       int    `json:"line"`
	Col        int    `json:"col"`
	Severity   string `json:"severity"`
	Code       string `json:"code"`
	Text       string `json:"text"`
	Path       string `json:"path"`
	Suggestion string `json:"suggestion"`
}
