package obs

import "slices"

// Kind is the type of a metric family.
type Kind uint8

// The kinds.
const (
	Gauge Kind = iota
	Counter
	Histogram
)

// String is the word of the text exposition.
func (k Kind) String() string { return [...]string{"gauge", "counter", "histogram"}[k] }

// Family is one line of the contract (operations.md 8.1).
type Family struct {
	Name     string
	Kind     Kind
	Labels   []string
	Help     string
	Buckets  []float64 // histograms; upper bounds in seconds
	atScrape bool      // made from the State of the scrape; else it has children
}

// family numbers the lines of the table.
type family int

const (
	buildInfo family = iota
	configReloadOK
	configReloadTime
	configGeneration
	configUnconfirmed
	configReloads
	listenerConnections
	listenerAccepted
	sipRequests
	sipResponses
	sipParseErrors
	sipRetransmissions
	sipDuration
	sipDialogs
	httpRequests
	httpDuration
	httpRefused
	websockets
	keys
	ruleMatches
	ruleSeconds
	ruleLimits
	enumWaiting
	enumDuration
	enumLookups
	tokensRefused
	serverUsable
	serverWeight
	serverSlowStart
	serverPartitions
	serverAdmin
	serverHealth
	serverChecks
	serverEjections
	serverRequests
	serverFailovers
	drainDialogs
	drainSessions
	drainWebsockets
	drainDeadline
	poolPanic
	poolUsable
	poolKeysMoved
	siteServing
	siteSwitches
	tlsNotAfter
	tlsHandshakes
	overloadRejections
	overloadDelay
	logDropped
	numFamilies
)

// Buckets are few: each is a series per child. Calls ring for minutes, pages answer in milliseconds, rules in less than
// a microsecond.
var (
	callBuckets = []float64{.005, .02, .1, .5, 1, 2, 4, 8, 16, 32, 64, 180}
	pageBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10}
	ruleBuckets = []float64{1e-7, 2.5e-7, 5e-7, 1e-6, 2.5e-6, 1e-5, 1e-4, 1e-3, 1e-2}
	enumBuckets = []float64{.001, .005, .01, .025, .05, .1, .2, .5, 1, 2, 4}
)

// families is the one place where a metric is named.
var families = [numFamilies]Family{
	buildInfo:         {Name: "wyegate_build_info", Kind: Gauge, Labels: words("version revision goversion"), Help: "Always 1; the labels say what was built.", atScrape: true},
	configReloadOK:    {Name: "wyegate_config_last_reload_successful", Kind: Gauge, Help: "Whether the newest configuration was taken.", atScrape: true},
	configReloadTime:  {Name: "wyegate_config_last_reload_success_timestamp_seconds", Kind: Gauge, Help: "When a configuration was last taken.", atScrape: true},
	configGeneration:  {Name: "wyegate_config_generation", Kind: Gauge, Help: "Number of the running generation.", atScrape: true},
	configUnconfirmed: {Name: "wyegate_config_unconfirmed", Kind: Gauge, Help: "Whether the running generation still waits for its confirmation.", atScrape: true},
	configReloads:     {Name: "wyegate_config_reloads_total", Kind: Counter, Labels: words("result"), Help: "Configurations offered, by result: applied, refused, reverted."},

	listenerConnections: {Name: "wyegate_listener_connections", Kind: Gauge, Labels: words("listener transport"), Help: "Open client connections."},
	listenerAccepted:    {Name: "wyegate_listener_accepted_connections_total", Kind: Counter, Labels: words("listener transport"), Help: "Client connections accepted."},

	sipRequests:        {Name: "wyegate_sip_requests_total", Kind: Counter, Labels: words("listener service application method"), Help: "SIP requests received."},
	sipResponses:       {Name: "wyegate_sip_responses_total", Kind: Counter, Labels: words("listener service application method code_class"), Help: "Final and provisional SIP responses sent to the side the request came from; none: no answer came."},
	sipParseErrors:     {Name: "wyegate_sip_parse_errors_total", Kind: Counter, Labels: words("listener reason"), Help: "SIP messages dropped or answered because of their form."},
	sipRetransmissions: {Name: "wyegate_sip_retransmissions_total", Kind: Counter, Labels: words("listener"), Help: "SIP requests seen before."},
	sipDuration:        {Name: "wyegate_sip_transaction_duration_seconds", Kind: Histogram, Labels: words("service method"), Buckets: callBuckets, Help: "Time from a SIP request to its final response."},
	sipDialogs:         {Name: "wyegate_sip_dialogs", Kind: Gauge, Labels: words("pool server"), Help: "Live SIP dialogs.", atScrape: true},

	httpRequests: {Name: "wyegate_http_requests_total", Kind: Counter, Labels: words("listener service application code_class"), Help: "HTTP requests, by class of the answer."},
	httpDuration: {Name: "wyegate_http_request_duration_seconds", Kind: Histogram, Labels: words("listener service code_class"), Buckets: pageBuckets, Help: "Time from an HTTP request's head to the end of its answer."},
	httpRefused:  {Name: "wyegate_http_refused_total", Kind: Counter, Labels: words("listener reason"), Help: "HTTP requests refused before a server was chosen."},
	websockets:   {Name: "wyegate_websocket_connections", Kind: Gauge, Labels: words("listener server"), Help: "Open websockets and other upgraded connections.", atScrape: true},

	keys:          {Name: "wyegate_key_total", Kind: Counter, Labels: words("service application protocol source"), Help: "Requests by where their key came from."},
	ruleMatches:   {Name: "wyegate_rule_matches_total", Kind: Counter, Labels: words("service rule"), Help: "Keys given by a data-centric rule."},
	ruleSeconds:   {Name: "wyegate_rule_evaluation_seconds", Kind: Histogram, Labels: words("service"), Buckets: ruleBuckets, Help: "Time in rules; one request in 64 is measured."},
	ruleLimits:    {Name: "wyegate_rule_limits_total", Kind: Counter, Labels: words("service limit"), Help: "Evaluations that met a limit."},
	enumWaiting:   {Name: "wyegate_enum_waiting", Kind: Gauge, Labels: words("service"), Help: "Requests that wait for an ENUM answer.", atScrape: true},
	enumDuration:  {Name: "wyegate_enum_lookup_duration_seconds", Kind: Histogram, Labels: words("service"), Buckets: enumBuckets, Help: "Time of ENUM queries that were sent."},
	enumLookups:   {Name: "wyegate_enum_lookups_total", Kind: Counter, Labels: words("service result"), Help: "ENUM look-ups by result."},
	tokensRefused: {Name: "wyegate_tokens_refused_total", Kind: Counter, Labels: words("service reason"), Help: "Texts in a token's place that are no token of ours."},

	serverUsable:     {Name: "wyegate_server_usable", Kind: Gauge, Labels: words("pool server"), Help: "Whether the server may get new traffic.", atScrape: true},
	serverWeight:     {Name: "wyegate_server_weight_ratio", Kind: Gauge, Labels: words("pool server"), Help: "Share of the pool's weight after overrides.", atScrape: true},
	serverSlowStart:  {Name: "wyegate_server_slow_start_ratio", Kind: Gauge, Labels: words("pool server"), Help: "Share of its own keys the server gets back so far; 1 outside slow start.", atScrape: true},
	serverPartitions: {Name: "wyegate_server_partitions", Kind: Gauge, Labels: words("pool server"), Help: "Partitions of the table the server owns.", atScrape: true},
	serverAdmin:      {Name: "wyegate_server_admin_state", Kind: Gauge, Labels: words("pool server state"), Help: "What the operator wants; 1 for the state in force.", atScrape: true},
	serverHealth:     {Name: "wyegate_server_health_state", Kind: Gauge, Labels: words("pool server protocol state"), Help: "What was observed; 1 for the state in force.", atScrape: true},
	serverChecks:     {Name: "wyegate_server_health_checks_total", Kind: Counter, Labels: words("pool server protocol result"), Help: "Health probes by result."},
	serverEjections:  {Name: "wyegate_server_ejections_total", Kind: Counter, Labels: words("pool server protocol cause"), Help: "Times traffic took the server out, by cause."},
	serverRequests:   {Name: "wyegate_server_requests_total", Kind: Counter, Labels: words("pool server protocol"), Help: "Requests sent to the server."},
	serverFailovers:  {Name: "wyegate_server_failovers_total", Kind: Counter, Labels: words("pool server protocol"), Help: "Requests that left this server for another."},
	drainDialogs:     {Name: "wyegate_server_drain_remaining_dialogs", Kind: Gauge, Labels: words("pool server"), Help: "SIP dialogs a draining server still has.", atScrape: true},
	drainSessions:    {Name: "wyegate_server_drain_remaining_sessions", Kind: Gauge, Labels: words("pool server"), Help: "HTTP sessions a draining server still has.", atScrape: true},
	drainWebsockets:  {Name: "wyegate_server_drain_remaining_websockets", Kind: Gauge, Labels: words("pool server"), Help: "Websockets a draining server still has.", atScrape: true},
	drainDeadline:    {Name: "wyegate_server_drain_deadline_timestamp_seconds", Kind: Gauge, Labels: words("pool server"), Help: "When the drain must end; only while the server drains.", atScrape: true},

	poolPanic:     {Name: "wyegate_pool_panic", Kind: Gauge, Labels: words("pool"), Help: "Whether health is ignored because too few servers are usable.", atScrape: true},
	poolUsable:    {Name: "wyegate_pool_usable_ratio", Kind: Gauge, Labels: words("pool"), Help: "Usable share of the pool's weight.", atScrape: true},
	poolKeysMoved: {Name: "wyegate_pool_keys_moved_total", Kind: Counter, Labels: words("pool"), Help: "Live keys that changed servers."},
	siteServing:   {Name: "wyegate_site_serving", Kind: Gauge, Labels: words("site"), Help: "Whether the site carries traffic.", atScrape: true},
	siteSwitches:  {Name: "wyegate_site_switches_total", Kind: Counter, Labels: words("site cause"), Help: "Times traffic moved to the site."},

	tlsNotAfter:   {Name: "wyegate_tls_certificate_not_after_timestamp_seconds", Kind: Gauge, Labels: words("certificate"), Help: "When the certificate in force ends.", atScrape: true},
	tlsHandshakes: {Name: "wyegate_tls_handshakes_total", Kind: Counter, Labels: words("listener result"), Help: "TLS handshakes by how they ended."},

	overloadRejections: {Name: "wyegate_overload_rejections_total", Kind: Counter, Labels: words("protocol cause"), Help: "Requests shed."},
	overloadDelay:      {Name: "wyegate_overload_delay_seconds", Kind: Gauge, Labels: words("protocol"), Help: "Wait of a message from socket to worker.", atScrape: true},
	logDropped:         {Name: "wyegate_log_dropped_total", Kind: Counter, Labels: words("log"), Help: "Log lines dropped because a queue was full or the file refused them."},
}

// Families lists the contract as this build has it, in its order.
func Families() []Family { return slices.Clone(families[:]) }
