//go:build race

package sip

// firstCut is how far apart first cuts are where two are made, or where whole groups are cut.
const firstCut = 16
