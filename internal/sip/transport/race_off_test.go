//go:build !race

package transport

const stackFactor = 1
