// Package sipproxy is the SIP proxy core.
package sipproxy
