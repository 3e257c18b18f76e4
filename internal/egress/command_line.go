package egress

import (
	"path/filepath"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/commandline"
)

// Recognise says what a command runs, as far as its command line shows it.
func Recognise(c trust.Command) commandline.Verdict {
	return commandline.Recognise(c.Declared, c.Path, c.Args)
}

// Script is the absolute path of the script that the command line gives an interpreter to run; empty where
// none is recognised. A relative one is looked up in the declared working directory, or else in root, the
// catalog's directory: the private directory that a command works in without one holds no scripts.
func Script(c trust.Command, root string) string {
	runs := Recognise(c)
	if runs.Script == "" || runs.Module {
		return ""
	}
	path := from(from(Dir(c.Dir, root), runs.Dir), runs.Script)
	if root == "" && !filepath.IsAbs(runs.Script) && !filepath.IsAbs(c.Dir) && !filepath.IsAbs(runs.Dir) {
		return "" // there is nothing that it is relative to
	}
	return path
}
