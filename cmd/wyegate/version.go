package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/wyegate/wyegate/admin"
)

// version and revision are stamped by the Makefile (-X main.version): it builds with -buildvcs=false, so that the go
// command knows neither.
var (
	version  = "unknown"
	revision = ""
)

// VersionCmd is `wyegate version`: this binary, not the daemon.
type VersionCmd struct{}

// Run needs no daemon.
func (*VersionCmd) Run(g *Globals) error {
	g.prepare()
	v := builtAs()
	return g.show(v, func(w io.Writer) {
		fmt.Fprintf(w, "wyegate %s\nrevision  %s\ngo        %s %s/%s\n", v.Version, dash(v.Revision), v.GoVersion, runtime.GOOS, runtime.GOARCH)
	})
}

// builtAs collects what is known of the build: for `version`, the API and the metric wyegate_build_info.
func builtAs() admin.Version {
	v := admin.Version{Version: version, Revision: revision, GoVersion: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && v.Revision == "" {
			v.Revision = s.Value
		}
	}
	if v.Version == "unknown" && info.Main.Version != "" && info.Main.Version != "(devel)" {
		v.Version = info.Main.Version
	}
	return v
}
