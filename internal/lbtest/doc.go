// Package lbtest holds what tests of whole systems need: a small SIP user agent over UDP and TCP that honours
// Record-Route and Contact in both directions, and web servers that answer with their name. It is for _test files only.
//
// One call: UA.Invite sends an INVITE and keeps the dialog; the other UA answers through its Handler; both ends build
// in-dialog requests from the dialog's route set, so a proxy in between sees what real user agents send.
package lbtest
