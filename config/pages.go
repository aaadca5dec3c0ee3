package config

// Codes lists the codes.
func Codes() []string { return nil }
