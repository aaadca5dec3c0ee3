// Command wyegate is the front door of a cluster of SIP and HTTP application servers: `wyegate run` balances both by one
// table, the other verbs check, explain and steer it. One file holds one verb; operations.md 5 is the contract.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/alecthomas/kong"
)

// cli is every verb with the flags that all share.
type cli struct {
	Globals

	Run     RunCmd     `cmd:"" help:"The daemon."`
	Check   CheckCmd   `cmd:"" help:"Check a configuration with its rules: all mistakes at once, with their places."`
	Explain ExplainCmd `cmd:"" help:"Where a message would go, and why."`
	Test    TestCmd    `cmd:"" help:"Run test files."`
	Init    InitCmd    `cmd:"" help:"Print a commented starter file."`
	Demo    DemoCmd    `cmd:"" help:"The main job on loopback, with checks."`

	Status    StatusCmd    `cmd:"" help:"One screen."`
	Servers   ServersCmd   `cmd:"" help:"Servers: states, drain, weight."`
	Keys      KeysCmd      `cmd:"" help:"Keys and their servers."`
	Listeners ListenersCmd `cmd:"" help:"Listeners."`
	Config    ConfigCmd    `cmd:"" help:"Configurations: show, compare, apply."`
	Dcr       DcrCmd       `cmd:"" name:"dcr" help:"Rule files: lint, format, test."`
	Logs      LogsCmd      `cmd:"" help:"The access log."`
	Probe     ProbeCmd     `cmd:"" help:"Ask a SIP or HTTP address from here."`
	Version   VersionCmd   `cmd:"" help:"This binary."`
}

// usage is a usage error that kong found.
func usage(err error) {
	fmt.Fprintf(os.Stderr, "wyegate: %v\n", err)
	os.Exit(exitUsage)
}

func main() {
	var c cli
	parser, err := kong.New(&c, kong.Name("wyegate"),
		kong.Description("SIP and HTTP front door: one key, one server."),
		kong.UsageOnError(), kong.ConfigureHelp(kong.HelpOptions{Compact: true}))
	if err != nil {
		usage(err)
	}
	ctx, err := parser.Parse(os.Args[1:])
	if err != nil {
		var bad *kong.ParseError
		if errors.As(err, &bad) && bad.Context != nil {
			fmt.Fprintf(os.Stderr, "wyegate: %v\n", err)
			bad.Context.Stdout = os.Stderr
			_ = bad.Context.PrintUsage(true) // the error was said already
			os.Exit(exitUsage)
		}
		usage(err)
	}
	if err := ctx.Run(&c.Globals); err != nil {
		if text := err.Error(); text != "" {
			fmt.Fprintf(os.Stderr, "wyegate: %s\n", text)
		}
		os.Exit(exitStatus(err))
	}
}
