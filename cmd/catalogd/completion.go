package main

import (
	"embed"
	"fmt"
	"io/fs"
)

// The scripts are thin: each asks `catalogd complete` for the candidates, so a new command, flag or tool needs no
// new script.
//
//go:embed completion
var completions embed.FS

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Run prints the script that makes the shell complete command lines of catalogd.
func (c completionCmd) Run(e *env) error {
	script, err := fs.ReadFile(completions, "completion/"+c.Shell)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.stdout, "%s", script)
	return err
}
