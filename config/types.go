package config

import (
	"net/netip"
	"time"
)

// Noted is in every object: a free text that status and show repeat.
type Noted struct {
	Note string `yaml:"note" doc:"Free text, shown in status, show and the dashboard."`
}

// Config is wyegate.yaml with everything merged, filled in and defaulted (operations.md 3.2).
type Config struct {
	Noted
	Node         Node          `yaml:"node" doc:"This process."`
	Sites        []Site        `yaml:"sites" doc:"Places with servers; the lowest rank that has a usable server carries the traffic."`
	SitePolicy   SitePolicy    `yaml:"site_policy" doc:"How traffic goes from one site to another and back."`
	Cluster      Cluster       `yaml:"cluster" doc:"The edge nodes; leave out for one node."`
	Admin        Admin         `yaml:"admin" doc:"Who may look and who may change, and where."`
	Certificates []Certificate `yaml:"certificates" doc:"Certificates by name; a changed file is picked up without touching open connections."`
	Listeners    []Listener    `yaml:"listeners" doc:"Where messages come in."`
	Services     []Service     `yaml:"services" doc:"What is served: applications, their rules and their pool."`
	Pools        []Pool        `yaml:"pools" doc:"Servers, and how one of them is chosen and watched."`
	Logging      Logging       `yaml:"logging" doc:"The log of the process and the access log."`
	Limits       Limits        `yaml:"limits" doc:"Bounds on what peers may send."`

	Version   int        // of the format: 1
	Digest    string     // SHA-256 in hex over the merged text before variables, and the bytes of all rule files
	Files     []File     // the main file and its includes, in the order read
	RuleFiles []RuleFile // each rule file where it is named, with its bytes

	where   map[string]Pos
	keyAt   map[string]Pos
	root    *node
	rebased map[*node]string // relative paths of includes in other folders, as the main file would write them
}

// Node is this process.
type Node struct {
	Noted
	Name     string   `yaml:"name" form:"name" doc:"Name of this node; default: the host name."`
	StateDir Path     `yaml:"state_dir" default:"/var/lib/wyegate" doc:"Folder of generations, overrides and keys made at first start."`
	Shutdown Shutdown `yaml:"shutdown" doc:"What SIGTERM does."`
}

// Shutdown is how a node leaves.
type Shutdown struct {
	Noted
	Delay    time.Duration `yaml:"delay" default:"5s" doc:"How long the node says that it is not ready before it drains."`
	Deadline time.Duration `yaml:"deadline" default:"60s" doc:"How long it drains at most."`
}

// Site is a place with servers.
type Site struct {
	Noted
	Name string `yaml:"name" form:"name" need:"yes" doc:"Name of the site."`
	Rank int    `yaml:"rank" need:"yes" min:"1" max:"1000" doc:"The lowest rank that has a usable server carries the traffic."`
}

// SitePolicy is how traffic goes from one site to another and back.
type SitePolicy struct {
	Noted
	Mode       string        `yaml:"mode" default:"primary-secondary" words:"primary-secondary,all-active" doc:"all-active: one table over the servers of every site."`
	Revert     string        `yaml:"revert" default:"auto" words:"auto,manual" doc:"Whether traffic returns by itself."`
	RevertHold time.Duration `yaml:"revert_hold" default:"60s" doc:"How long the primary must stay usable before traffic returns."`
}

// Cluster is the edge nodes.
type Cluster struct {
	Noted
	Engine     string        `yaml:"engine" default:"embedded" words:"embedded,external" doc:"embedded: NATS inside this process; external: your NATS cluster."`
	Nodes      []ClusterNode `yaml:"nodes" doc:"The nodes; one node opens no port for the others."`
	SecretFile Path          `yaml:"secret_file" form:"secret" doc:"Numbered secrets for tokens and branches; the first writes, all read. Default: made at first start."`
}

// ClusterNode is one edge node.
type ClusterNode struct {
	Noted
	Name    string   `yaml:"name" form:"name" need:"yes" doc:"Name of the node."`
	Site    string   `yaml:"site" doc:"Site that the node stands in."`
	Address HostPort `yaml:"address" form:"local" doc:"Address and port for the other nodes."`
}

// Admin is the admin side.
type Admin struct {
	Noted
	Sockets []AdminSocket `yaml:"sockets" doc:"Unix sockets; who may open one has its role. Default: /run/wyegate/admin.sock with mode 0660, role admin."`
	Metrics Metrics       `yaml:"metrics" doc:"Metrics, /healthz and /readyz."`
}

// AdminSocket is one unix socket.
type AdminSocket struct {
	Noted
	Path  Path     `yaml:"path" need:"yes" doc:"Where the socket is."`
	Mode  FileMode `yaml:"mode" default:"0660" doc:"Mode of the socket."`
	Group string   `yaml:"group" doc:"Group that owns it; default: the group of the process."`
	Role  string   `yaml:"role" default:"admin" words:"viewer,operator,admin" doc:"What whoever opens it may do."`
}

// Metrics is where metrics and the health of the node are read.
type Metrics struct {
	Noted
	Address Bind `yaml:"address" default:"127.0.0.1:9464" doc:"Address of /metrics, /healthz and /readyz."`
	Peers   bool `yaml:"peers" default:"false" doc:"Diameter peer names as labels."`
}

// Certificate is a certificate with its key.
type Certificate struct {
	Noted
	Name     string `yaml:"name" form:"name" need:"yes" doc:"Name of the certificate."`
	CertFile Path   `yaml:"cert_file" need:"yes" doc:"PEM file: the certificate, then those that signed it."`
	KeyFile  Path   `yaml:"key_file" form:"secret" need:"yes" doc:"PEM file of the private key; nobody but owner and group may read it."`
	Watch    bool   `yaml:"watch" default:"true" doc:"Whether a changed file is picked up."`
}

// Logging is the log of the process and the access log.
type Logging struct {
	Noted
	Level        string    `yaml:"level" default:"info" words:"debug,info,warn,error" doc:"The least severe line that is written."`
	Format       string    `yaml:"format" default:"json" words:"json,text" doc:"Form of the log of the process."`
	Access       Path      `yaml:"access" doc:"File of the access log; default: none."`
	AccessFormat string    `yaml:"access_format" default:"json" words:"json,line" doc:"Form of the access log."`
	Sample       LogSample `yaml:"sample" doc:"Share of access log lines that is written, by class of the final status."`
}

// LogSample thins the access log. Errors are never thinned.
type LogSample struct {
	Noted
	Status1xx float64 `yaml:"status_1xx" default:"1.0" min:"0" max:"1" doc:"Share of lines with a final status 1xx (upgraded connections)."`
	Status2xx float64 `yaml:"status_2xx" default:"1.0" min:"0" max:"1" doc:"Share of lines with status 2xx."`
	Status3xx float64 `yaml:"status_3xx" default:"1.0" min:"0" max:"1" doc:"Share of lines with status 3xx."`
}

// Limits are bounds on what peers may send.
type Limits struct {
	Noted
	SIP         SIPLimits        `yaml:"sip" doc:"Bounds on SIP."`
	HTTP        HTTPLimits       `yaml:"http" doc:"Bounds on HTTP."`
	Connections ConnectionLimits `yaml:"connections" doc:"Bounds on connections of clients."`
}

// SIPLimits are bounds on SIP. Rates of 0 are no limit.
type SIPLimits struct {
	Noted
	PerSourceRPS int            `yaml:"per_source_rps" default:"0" min:"0" max:"1000000" doc:"Messages a second from one source; 0: no limit."`
	Burst        int            `yaml:"burst" default:"0" min:"0" max:"10000000" doc:"Messages at once above the rate; 0: two seconds' worth."`
	Exempt       []netip.Prefix `yaml:"exempt" doc:"Sources without a rate."`
	MaxURI       Size           `yaml:"max_uri" default:"8KiB" min:"256B" max:"64KiB" doc:"Longest Request-URI."`
	MaxHeader    Size           `yaml:"max_header" default:"64KiB" min:"1KiB" max:"64KiB" doc:"Largest header block."`
	MaxBody      Size           `yaml:"max_body" default:"1MiB" min:"0B" max:"64MiB" doc:"Largest body on a stream."`
	Overload     Overload       `yaml:"overload" doc:"What happens when messages wait too long."`
}

// Overload is the guard against more work than a node can do.
type Overload struct {
	Noted
	TargetDelay      time.Duration `yaml:"target_delay" default:"50ms" min:"1ms" max:"10s" doc:"Longest wait from socket to worker before requests are refused."`
	Answer           int           `yaml:"answer" default:"503" min:"400" max:"699" doc:"Status of a refused request."`
	RetryAfter       time.Duration `yaml:"retry_after" default:"5s" min:"1s" max:"5m" doc:"Retry-After of that answer."`
	RetryAfterJitter time.Duration `yaml:"retry_after_jitter" default:"10s" max:"5m" doc:"Up to this much is added at random."`
}

// HTTPLimits are bounds on HTTP.
type HTTPLimits struct {
	Noted
	HeaderTimeout time.Duration `yaml:"header_timeout" default:"10s" min:"100ms" max:"10m" doc:"A request head must be whole this long after its first byte."`
	BodyIdle      time.Duration `yaml:"body_idle" default:"30s" min:"100ms" max:"1h" doc:"Longest silence within a body, both ways."`
	IdleTimeout   time.Duration `yaml:"idle_timeout" default:"75s" min:"100ms" max:"24h" doc:"A client's connection without request is closed after this."`
	MaxTarget     Size          `yaml:"max_target" default:"8KiB" min:"256B" max:"64KiB" doc:"Longest request target."`
	MaxHeader     Size          `yaml:"max_header" default:"16KiB" min:"1KiB" max:"64KiB" doc:"Largest request head."`
}

// ConnectionLimits are bounds on connections of clients.
type ConnectionLimits struct {
	Noted
	PerListener int `yaml:"per_listener" default:"100000" min:"1" max:"10000000" doc:"Connections of one listener."`
	PerSource   int `yaml:"per_source" default:"1000" min:"1" max:"10000000" doc:"Connections of one source to one listener."`
}
