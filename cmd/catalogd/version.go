package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// release is set by the build (-ldflags "-X main.release=v1.2.3").
var release string

// version returns the release, else the module's version from the build, else "devel".
func version() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}

type versionCmd struct{}

func (versionCmd) Run(e *env) error {
	if e.json {
		return e.printJSON(map[string]string{"version": version(), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH})
	}
	_, err := fmt.Fprintln(e.stdout, versionLine())
	return err
}

// versionLine returns what catalogd version and --version print.
func versionLine() string {
	return fmt.Sprintf("catalogd %s (%s, %s/%s)", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// helpCmd stands in the list of commands. run replaces `help COMMAND` by `COMMAND --help`.
type helpCmd struct {
	Command []string `arg:"" optional:"" help:"The command, such as check or intents list; without one, all commands."`
}
