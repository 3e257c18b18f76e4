package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// rows are the scripts that stand for rows of the list of bad inputs (docs/robustness.md).
var rows = []struct{ row, script string }{
	{"A7/the daemon answers meanwhile", "serve_endless"},
	{"A8/check ends", "check_endless"},
	{"C18/signals", "serve_hangup"},
	{"C18/the end in the middle of a load", "serve_end_in_load"},
	{"E19/standard input and output", "stdio"},
}

func isRow(file string) bool {
	for _, r := range rows {
		if filepath.Base(file) == r.script+".txtar" {
			return true
		}
	}
	return false
}

// TestBadInput runs the scripts that are rows, by their numbers. The rest are TestScript's.
func TestBadInput(t *testing.T) {
	for _, r := range rows {
		t.Run(strings.ReplaceAll(r.row, " ", "_"), func(t *testing.T) {
			runScripts(t, "../../testdata/script/"+r.script+".txtar")
		})
	}
}
