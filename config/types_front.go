package config

import (
	"net/netip"
	"time"
)

// Listener is where messages come in.
type Listener struct {
	Noted
	Name              string         `yaml:"name" form:"name" doc:"Name of the listener; default: protocol-transport-port."`
	Protocol          string         `yaml:"protocol" need:"yes" words:"sip,http,diameter" doc:"What is spoken."`
	Transport         string         `yaml:"transport" need:"yes" words:"udp,tcp,tls,ws,wss,sctp" doc:"What carries it: udp, tcp, tls, ws or wss for sip; tcp or tls for http."`
	Bind              Bind           `yaml:"bind" need:"yes" doc:"Address and port; without address: every address."`
	Services          []string       `yaml:"services" doc:"Services whose applications get its requests; default: all."`
	Certificate       string         `yaml:"certificate" doc:"Name of the certificate, for tls and wss."`
	Path              string         `yaml:"path" default:"/ws" form:"urlpath" doc:"Path of the WebSocket, for ws and wss."`
	Origins           []string       `yaml:"origins" doc:"Origins that may open the WebSocket; default: the same host."`
	MaxConnectionAge  time.Duration  `yaml:"max_connection_age" default:"0s" doc:"Connections older than this are closed when no transaction is open; 0s: never."`
	AgeJitter         Percent        `yaml:"age_jitter" default:"20%" max:"100%" doc:"The age is this much less or more, at random."`
	HTTP2             bool           `yaml:"http2" default:"true" doc:"Whether h2 is offered over TLS."`
	ProxyProtocolFrom []netip.Prefix `yaml:"proxy_protocol_from" doc:"Peers that must send the PROXY protocol, version 1 or 2, over UDP version 2 in front of every datagram; default: nobody may."`
	SIPWebsocket      *SIPWebsocket  `yaml:"sip_websocket" doc:"SIP over WebSocket on this HTTP listener; default: off."`
	Servers           bool           `yaml:"servers" default:"true" doc:"Whether messages from our servers count as from inside on this listener."`
	Advertise         HostPort       `yaml:"advertise" doc:"Host and port in Via and Record-Route; default: the bound address."`
	Aliases           []string       `yaml:"aliases" form:"alias" doc:"Further names and addresses by which clients and servers know this listener."`
	Nodes             []string       `yaml:"nodes" doc:"Nodes that have this listener; default: every node."`
	ClientCertificate string         `yaml:"client_certificates" default:"off" words:"off,optional,required" doc:"Whether clients show a certificate."`
	ClientCAFile      Path           `yaml:"client_ca_file" doc:"PEM file of those who sign client certificates."`
	StrictSNI         bool           `yaml:"strict_sni" default:"false" doc:"Refuse handshakes for names that no certificate covers."`
	Sockets           int            `yaml:"sockets" default:"0" min:"0" max:"256" doc:"UDP sockets of this listener; 0: one per CPU."`
	PathHeader        bool           `yaml:"path_header" default:"true" doc:"Add Path with a token to REGISTER."`
	Outbound          bool           `yaml:"outbound" default:"false" doc:"Act as RFC 5626 edge proxy for flows of this listener."`
	ForceRport        bool           `yaml:"force_rport" default:"false" doc:"Answer to the source port although the client did not ask (RFC 3581)."`
	TLSURI            string         `yaml:"tls_uri" default:"sips" words:"sips,transport" doc:"How our entry of a TLS side is written in Record-Route."`
	ProtectedNetwork  bool           `yaml:"protected_network" default:"false" doc:"The network protects what it carries: sips may come and go without TLS."`
	Paused            bool           `yaml:"paused" default:"false" doc:"Begin paused: the port is open, new requests are refused."`
	BadRequests       string         `yaml:"bad_requests" default:"answer" words:"answer,drop" doc:"What a message that cannot be served gets."`
	SocketBuffer      Size           `yaml:"socket_buffer" default:"4MiB" min:"64KiB" max:"1GiB" doc:"Kernel buffer of a UDP socket."`
	Group             string         `yaml:"group" doc:"Role group of a Diameter listener."`
}

// SIPWebsocket is SIP over WebSocket on an HTTP listener.
type SIPWebsocket struct {
	Noted
	Path    string   `yaml:"path" default:"/ws" form:"urlpath" doc:"Path of the WebSocket."`
	Origins []string `yaml:"origins" doc:"Origins that may open it; default: the same host."`
}

// Service is applications with their rules and their pool.
type Service struct {
	Noted
	Name             string         `yaml:"name" form:"name" need:"yes" doc:"Name of the service."`
	Pool             string         `yaml:"pool" need:"yes" doc:"Pool that serves its applications."`
	Applications     []Application  `yaml:"applications" doc:"Which request belongs to what; default: one converged application that takes everything, named like the service."`
	Affinity         Affinity       `yaml:"affinity" doc:"How requests find their server."`
	SIP              ServiceSIP     `yaml:"sip" doc:"Behaviour towards SIP."`
	HTTP             ServiceHTTP    `yaml:"http" doc:"Behaviour towards HTTP."`
	TrustHeadersFrom []netip.Prefix `yaml:"trust_headers_from" doc:"From elsewhere P-Asserted-Identity, X-Forwarded-* and their like are dropped; default: nobody is trusted."`
}

// Application is the traffic of one kind, by host and path.
type Application struct {
	Noted
	Name       string    `yaml:"name" form:"name" need:"yes" doc:"Name of the application."`
	Kind       string    `yaml:"kind" default:"converged" words:"converged,web,sip" doc:"Protocols it takes, and so its policy."`
	Host       []string  `yaml:"host" form:"host" doc:"Hosts, exact or *.suffix; default: every host."`
	PathPrefix string    `yaml:"path_prefix" form:"urlpath" doc:"Whole segments of the path, for HTTP; default: every path."`
	Pool       string    `yaml:"pool" doc:"Default: the service's."`
	Affinity   *Affinity `yaml:"affinity" doc:"Default: the service's, as a whole."`
}

// Affinity is how requests find their server, and find it again.
type Affinity struct {
	Noted
	Rules      Path         `yaml:"rules" doc:"File of data-centric rules; default: none."`
	RulesWatch bool         `yaml:"rules_watch" default:"true" doc:"Whether a changed rule file is checked and taken."`
	SIP        SIPAffinity  `yaml:"sip" doc:"Keys of SIP requests."`
	HTTP       HTTPAffinity `yaml:"http" doc:"Keys and cookies of HTTP requests."`
	Match      Match        `yaml:"match" doc:"Patterns in rules."`
	Token      Token        `yaml:"token" doc:"Names of what keeps dialogs and sessions on their server."`
	TellServer TellServer   `yaml:"tell_server" doc:"Header fields towards the server; empty: none."`
	Enum       *Enum        `yaml:"enum" doc:"ENUM for resolve in rules; default: numbers stand for themselves."`
}

// SIPAffinity is keys of SIP requests.
type SIPAffinity struct {
	Noted
	Policy             string            `yaml:"policy" default:"consistent-hash" words:"consistent-hash" doc:"The only one."`
	DefaultKey         []string          `yaml:"default_key" default:"from-tag,call-id" words:"from-tag,call-id,to-tag,from,to,request-uri" doc:"Key when no rule gives one: these parts, one behind the other."`
	SessionCaseAliases map[string]string `yaml:"session_case_aliases" words:"ORIGINATING,TERMINATING,TERMINATING_UNREGISTERED,EXTERNAL" doc:"Further values of the call parameter, and the session case each stands for."`
	HeaderMatch        bool              `yaml:"header_match" default:"false" doc:"Allow match under header."`
	ReadBEKey          bool              `yaml:"read_bekey" default:"false" doc:"The bekey parameter of an older balancer is the key; only behind trusted peers."`
}

// HTTPAffinity is keys and cookies of HTTP requests.
type HTTPAffinity struct {
	Noted
	Policy         string   `yaml:"policy" default:"sticky-round-robin" words:"sticky-round-robin" doc:"Of web applications, and of converged ones without rules; the only one."`
	DefaultKey     []string `yaml:"default_key" default:"remote-host,remote-port" words:"remote-host,remote-port,client-address" doc:"Key when no rule gives one: [remote-host, remote-port], [remote-host] or [client-address]."`
	Cookie         string   `yaml:"cookie" default:"session" words:"session,always,off" doc:"When an answer sets the sticky cookie; session: when it sets one of session_cookies."`
	SessionCookies []string `yaml:"session_cookies" default:"JSESSIONID" form:"token" doc:"Cookies that say that a session began."`
	SameSite       string   `yaml:"same_site" default:"lax" words:"lax,strict,none" doc:"SameSite of the sticky cookie."`
	Order          string   `yaml:"order" default:"token-first" words:"token-first,rule-first" doc:"What is asked first: the token, or the rules."`
	PlusIsSpace    bool     `yaml:"plus_is_space" default:"false" doc:"Whether + in a query is a space."`
}

// Match is how patterns in rules are run.
type Match struct {
	Noted
	Mode     string `yaml:"mode" default:"auto" words:"auto,full,search" doc:"auto: the whole value, and if that fails a part of it."`
	MaxSteps int    `yaml:"max_steps" default:"20000" min:"100" max:"1000000" doc:"Steps of one match before it fails."`
}

// Token is the names of what carries tokens.
type Token struct {
	Noted
	SIPParameter      string `yaml:"sip_parameter" default:"wg" form:"token" doc:"Parameter of our Record-Route and Path."`
	HTTPCookie        string `yaml:"http_cookie" default:"WGROUTE" form:"token" doc:"The sticky cookie."`
	HTTPPathParameter string `yaml:"http_path_parameter" default:"wgroute" form:"token" doc:"The path parameter for clients without cookies."`
}

// TellServer is header fields towards the server.
type TellServer struct {
	Noted
	Key   string `yaml:"key" form:"header" doc:"Field with the key."`
	Token string `yaml:"token" form:"header" doc:"Field with a token."`
}

// Enum is ENUM (RFC 6116) for resolve in rules.
type Enum struct {
	Noted
	Suffix    string        `yaml:"suffix" default:"e164.arpa" form:"host" doc:"Domain below which numbers are looked up."`
	Resolvers []HostPort    `yaml:"resolvers" form:"local" doc:"DNS servers; default: those of the host."`
	Budget    time.Duration `yaml:"budget" default:"200ms" min:"1ms" max:"30s" doc:"How long one request may wait."`
	CacheMax  time.Duration `yaml:"cache_max" default:"10m" max:"24h" doc:"How long an answer is kept at most."`
}

// ServiceSIP is behaviour towards SIP.
type ServiceSIP struct {
	Noted
	RecordRoute     bool     `yaml:"record_route" default:"true" doc:"Stay in the path of dialogs; false only where every server's Contact can be reached from outside."`
	Schemes         []string `yaml:"schemes" default:"sip,sips,tel,urn" form:"token" doc:"Schemes of the Request-URI; others get 416."`
	Foreign         string   `yaml:"foreign" default:"balance" words:"balance,refuse" doc:"A next hop that is neither ours nor the pool's."`
	FromServers     string   `yaml:"from_servers" default:"balance" words:"balance,route-only" doc:"A server's request to our own names."`
	FlowTokens      string   `yaml:"flow_tokens" default:"connections" words:"connections,all" doc:"Which clients get a token for their flow; all: UDP clients too."`
	KeepRequests    string   `yaml:"keep_requests" default:"reliable" words:"reliable,all" doc:"Requests held until answered: those of TCP, TLS and WS clients, or all."`
	OverloadControl bool     `yaml:"overload_control" default:"false" doc:"Offer RFC 7339 towards callers."`
}

// ServiceHTTP is behaviour towards HTTP.
type ServiceHTTP struct {
	Noted
	DefaultHost    string   `yaml:"default_host" form:"host" doc:"Host of requests without one (HTTP/1.0); default: none."`
	Via            string   `yaml:"via" default:"wyegate" form:"token" doc:"Our pseudonym in Via."`
	Upgrade        []string `yaml:"upgrade" default:"websocket" form:"token" doc:"Protocols that a connection may be upgraded to."`
	LenientFraming bool     `yaml:"lenient_framing" default:"false" doc:"Repair what is refused otherwise, where RFC 9112 allows it."`
}
