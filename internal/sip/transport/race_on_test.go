//go:build race

package transport

// stackFactor: the race detector needs larger stacks.
const stackFactor = 2
