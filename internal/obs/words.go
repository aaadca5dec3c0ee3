package obs

import "strings"

// words splits a list of labels or label values that is written with blanks.
func words(s string) []string { return strings.Fields(s) }

// Word lists of labels (operations.md 8.1). A set of 0/1 gauges shows each of its words.
var (
	// Protocols are the values of the label protocol, by routing.Proto.
	Protocols = [...]string{"sip", "http"}
	// CodeClasses are the values of the label code_class; index 0: no answer.
	CodeClasses = [...]string{"none", "1xx", "2xx", "3xx", "4xx", "5xx", "6xx"}
	// AdminStates are the values of the label state of wyegate_server_admin_state, by routing.Admin.
	AdminStates = [...]string{"ready", "drain", "maint"}
	// HealthStates are the values of the label state of wyegate_server_health_state.
	HealthStates = [...]string{"unknown", "up", "down", "draining", "ejected"}
	// KeySources are the values of the label source of wyegate_key_total, in the order of proxy.KeySource from
	// SourceRule on.
	KeySources = [...]string{"rule", "default", "token", "stale_token", "round_robin"}
	// ReloadResults are the values of the label result of wyegate_config_reloads_total.
	ReloadResults = [...]string{"applied", "refused", "reverted"}
	// EnumResults are the values of the label result of wyegate_enum_lookups_total.
	EnumResults = [...]string{"hit", "stale", "answer", "negative", "timeout", "error", "shed"}
	// TokenReasons are the values of the label reason of wyegate_tokens_refused_total: the texts of proxy's errors, and
	// a token of another application.
	TokenReasons = [...]string{"malformed", "version", "secret", "mac", "application"}
	// RuleLimitWords are the values of the label limit of wyegate_rule_limits_total.
	RuleLimitWords = [...]string{"steps", "list", "parked"}
	// CheckResults are the values of the label result of wyegate_server_health_checks_total.
	CheckResults = [...]string{"ok", "busy", "fail", "timeout"}
	// EjectionCauses are the values of the label cause of wyegate_server_ejections_total.
	EjectionCauses = [...]string{"refused", "timeout", "server_error", "probes", "retry_after"}
	// SiteCauses are the values of the label cause of wyegate_site_switches_total.
	SiteCauses = [...]string{"no_server", "revert", "forced"}
	// OverloadCauses are the values of the label cause of wyegate_overload_rejections_total.
	OverloadCauses = [...]string{"delay", "source_rate", "connections", "queue", "memory", "server"}
	// HandshakeResults are the values of the label result of wyegate_tls_handshakes_total, by listen.HandshakeResult.
	HandshakeResults = [...]string{"ok", "failed", "timeout", "shed"}
	// ParseReasons are the values of the label reason of wyegate_sip_parse_errors_total, by ParseReason.
	ParseReasons = [NumParseReasons]string{"malformed", "invalid", "foreign_via", "framing"}
	// RefusedReasons are the values of the label reason of wyegate_http_refused_total, by RefusedReason.
	RefusedReasons = [NumRefused]string{"syntax", "limit", "method", "host", "timeout"}
	// SIPMethods are the values of the label method: the methods of the IANA list; SIPMethod gives the index of one.
	SIPMethods = [...]string{"INVITE", "ACK", "BYE", "CANCEL", "OPTIONS", "REGISTER", "PRACK", "SUBSCRIBE", "NOTIFY", "PUBLISH", "INFO", "REFER", "MESSAGE", "UPDATE", "other"}
)

// NumSIPMethods counts SIPMethods.
const NumSIPMethods = len(SIPMethods)

// SIPMethod gives the index of a method in SIPMethods; unknown ones share the last.
func SIPMethod(m []byte) int {
	for i := range NumSIPMethods - 1 {
		if SIPMethods[i] == string(m) {
			return i
		}
	}
	return NumSIPMethods - 1
}

// CodeClass gives the index of a status in CodeClasses: its hundreds, 0 for none.
func CodeClass(code int) int {
	if c := code / 100; c > 0 && c < len(CodeClasses) {
		return c
	}
	return 0
}
