package config

import (
	"net/netip"
	"time"
)

// Pool is servers, and how one of them is chosen and watched.
type Pool struct {
	Noted
	Name      string        `yaml:"name" form:"name" need:"yes" doc:"Name of the pool."`
	Hash      Hash          `yaml:"hash" doc:"The table from keys to servers."`
	Failback  Failback      `yaml:"failback" doc:"When keys return to a server that is back."`
	SlowStart time.Duration `yaml:"slow_start" default:"0s" max:"24h" doc:"How long a server that comes back takes to get all its keys."`
	Panic     Panic         `yaml:"panic" doc:"When health is not believed."`
	Connect   Connect       `yaml:"connect" doc:"Connections to servers."`
	Health    Health        `yaml:"health" doc:"How servers are watched."`
	Drain     Drain         `yaml:"drain" doc:"How a server is emptied."`
	Servers   []Server      `yaml:"servers" doc:"The servers."`
}

// Hash is the table from keys to servers.
type Hash struct {
	Noted
	Algorithm   string  `yaml:"algorithm" default:"consistent" words:"consistent" doc:"The only one."`
	Partitions  int     `yaml:"partitions" default:"65521" min:"1" max:"1048576" doc:"Parts that the keys fall into; each belongs to one server."`
	Replicas    int     `yaml:"replicas" default:"400" min:"1" max:"10000" doc:"Points of one server on the ring."`
	Load        float64 `yaml:"load" default:"1.10" min:"1" max:"1000" code:"WG120" doc:"Most partitions of one server over the mean."`
	BoundedLoad Share   `yaml:"bounded_load" default:"none" min:"100%" max:"1000%" doc:"Most live load of one server over the mean; can part a call from its page."`
}

// Failback is when keys return to a server that is back.
type Failback struct {
	Noted
	Mode    string        `yaml:"mode" default:"when-idle" words:"when-idle,immediate,never" doc:"when-idle: a live key returns when its dialogs have ended."`
	MaxWait time.Duration `yaml:"max_wait" default:"30m" max:"168h" doc:"How long a live key stays away at most."`
}

// Panic is when health is not believed.
type Panic struct {
	Noted
	MinUsable Percent `yaml:"min_usable" default:"25%" max:"100%" doc:"Below this share of usable weight health is not believed."`
	Action    string  `yaml:"action" default:"use-all" words:"use-all,refuse" doc:"What happens then."`
}

// Connect is connections to servers.
type Connect struct {
	Noted
	Timeout       time.Duration `yaml:"timeout" default:"2s" min:"10ms" max:"5m" doc:"How long a connect may take."`
	Tries         int           `yaml:"tries" default:"3" min:"1" max:"9" doc:"Servers that one request may be offered to."`
	HTTP          string        `yaml:"http" default:"h1" words:"h1,h2" doc:"HTTP version towards servers."`
	Idle          time.Duration `yaml:"idle" default:"50s" max:"24h" doc:"How long an idle connection to a server is kept; below the server's own time."`
	ProxyProtocol string        `yaml:"proxy_protocol" default:"none" words:"none,v1,v2" doc:"PROXY header towards servers."`
	Source        []netip.Addr  `yaml:"source" doc:"Own addresses to connect from, one per family."`
}

// Health is how servers are watched.
type Health struct {
	Noted
	Scope   string        `yaml:"scope" default:"server" words:"server,address" doc:"server: usable only if SIP and HTTP are, so that both move together."`
	Active  ActiveHealth  `yaml:"active" doc:"Probes."`
	Passive PassiveHealth `yaml:"passive" doc:"What traffic shows."`
}

// ActiveHealth is probes.
type ActiveHealth struct {
	Noted
	SIP               SIPProbe  `yaml:"sip" doc:"Probes of SIP addresses."`
	HTTP              HTTPProbe `yaml:"http" doc:"Probes of HTTP addresses."`
	Treat503OnOptions string    `yaml:"treat_503_on_options_as" default:"drain" words:"drain,down" doc:"drain: the server asks to be drained."`
}

// ProbeTimes is when a probe is sent, and what its results do.
type ProbeTimes struct {
	Interval     time.Duration `yaml:"interval" default:"5s" min:"100ms" max:"1h" doc:"Time between probes."`
	DownInterval time.Duration `yaml:"down_interval" default:"2s" min:"100ms" max:"1h" doc:"The same while the server is down."`
	Jitter       Percent       `yaml:"jitter" default:"20%" max:"100%" doc:"The interval is this much less or more, at random."`
	Timeout      time.Duration `yaml:"timeout" default:"2s" min:"10ms" max:"5m" doc:"How long an answer may take."`
	Fall         int           `yaml:"fall" default:"3" min:"1" max:"100" doc:"Misses in a row that make a server down."`
	Rise         int           `yaml:"rise" default:"2" min:"1" max:"100" doc:"Hits in a row that make it up."`
}

// SIPProbe is probes of SIP addresses.
type SIPProbe struct {
	Noted
	Method      string `yaml:"method" default:"OPTIONS" form:"token" doc:"Method of the probe."`
	MaxForwards int    `yaml:"max_forwards" default:"0" min:"0" max:"255" doc:"Its Max-Forwards."`
	ProbeTimes
	OK []StatusRange `yaml:"ok" doc:"Answers that count as alive; default: any final answer but 503."`
}

// HTTPProbe is probes of HTTP addresses.
type HTTPProbe struct {
	Noted
	Path string `yaml:"path" form:"urlpath" doc:"Path of a GET; default: none, and a TCP connect is the probe."`
	ProbeTimes
	OK          []StatusRange `yaml:"ok" default:"200-399" doc:"Answers that count as alive."`
	DrainStatus []StatusRange `yaml:"drain_status" doc:"Answers by which the server asks to be drained."`
}

// PassiveHealth is what traffic shows.
type PassiveHealth struct {
	Noted
	ConsecutiveFailures int           `yaml:"consecutive_failures" default:"5" min:"0" max:"10000" doc:"Failures in a row that eject a server; 0: never."`
	EjectFor            time.Duration `yaml:"eject_for" default:"30s" min:"1s" max:"24h" doc:"How long it stays away."`
	MaxEjected          Percent       `yaml:"max_ejected" default:"50%" max:"100%" doc:"Most of a pool that may be ejected."`
	HonourRetryAfter    bool          `yaml:"honour_retry_after" default:"true" doc:"Leave a server alone for as long as its Retry-After says."`
}

// Drain is how a server is emptied.
type Drain struct {
	Noted
	Deadline     time.Duration `yaml:"deadline" default:"2h" max:"168h" doc:"How long a drain takes at most."`
	AtDeadline   string        `yaml:"at_deadline" default:"wait" words:"wait,move,cancel" doc:"What happens then to what is left."`
	NewKeys      string        `yaml:"new_keys" default:"elsewhere" words:"elsewhere" doc:"Where new keys go; the only one."`
	LiveKeys     string        `yaml:"live_keys" default:"stay" words:"stay,move" doc:"Whether a key with live dialogs or sessions stays."`
	WSSCloseCode int           `yaml:"wss_close_code" default:"1012" min:"1000" max:"4999" doc:"Code by which WebSockets are closed."`
}

// Server is one server of a pool, with one address for each protocol.
type Server struct {
	Noted
	Name          string     `yaml:"name" form:"name" need:"yes" doc:"Name of the server."`
	Site          string     `yaml:"site" doc:"Site that it stands in."`
	Weight        int        `yaml:"weight" default:"100" min:"0" max:"1000000" doc:"Its share of the keys beside the others' weights; 0: nothing new."`
	SIP           HostPort   `yaml:"sip" doc:"Its SIP address and port."`
	SIPTransport  string     `yaml:"sip_transport" default:"udp" words:"udp,tcp,tls,ws,wss" doc:"How SIP is carried to it."`
	SIPPath       string     `yaml:"sip_path" default:"/ws" form:"urlpath" doc:"Path of its WebSocket, for sip_transport ws and wss."`
	TLS           *ServerTLS `yaml:"tls" doc:"What is checked of it, and shown to it, over TLS."`
	HTTP          HostPort   `yaml:"http" doc:"Its HTTP address and port."`
	HTTPTransport string     `yaml:"http_transport" words:"tcp,tls" doc:"How HTTP is carried to it; default: tls where tls is there and SIP does not use it, else tcp."`
	MaxConcurrent int        `yaml:"max_concurrent" default:"0" min:"0" max:"100000000" doc:"Requests at once; 0: no limit."`
	AdminState    string     `yaml:"admin_state" default:"ready" words:"ready,drain,maint" doc:"What the operator wants of it, until an override says otherwise."`
}

// ServerTLS is how a server is known over TLS.
type ServerTLS struct {
	Noted
	ServerName  string `yaml:"server_name" doc:"Name that its certificate must have; default: the host of its address."`
	CAFile      Path   `yaml:"ca_file" doc:"PEM file of those who sign its certificate; default: the system's."`
	Certificate string `yaml:"certificate" doc:"Name of the certificate that we show when it asks; default: none."`
}
