package config

import (
	"embed"
	"io/fs"
	"path"
	"strings"
)

//go:embed profiles/*.yaml
var profiles embed.FS

// Profile gives a commented starter file: "converged" or "sip". ok is false for a name that this build does not have.
func Profile(name string) (text []byte, ok bool) {
	text, err := profiles.ReadFile("profiles/" + name + ".yaml")
	return text, err == nil
}

// Profiles lists the names that Profile knows.
func Profiles() []string {
	files, err := fs.Glob(profiles, "profiles/*.yaml")
	if err != nil {
		return nil
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(path.Base(f), ".yaml")
	}
	return files
}
