//go:build !linux

package main

import "os"

// isTerminal takes every character device for a terminal.
func isTerminal(f *os.File) bool {
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}
