package decision_test

import (
	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/problem"
)

// connectInput asks about date -u, as the starter catalog declares it.
func connectInput() decision.ConnectInput {
	return decision.ConnectInput{
		Subject: decision.Subject{Kind: "tool", Name: "now", Effect: "read", Pos: problem.Position{File: "catalog/now.cue", Line: 3, Col: 2}},
		Target: trust.Target{Kind: trust.Exec, Command: &trust.Command{
			Declared: "date", Path: "/usr/bin/date", Args: []string{"-u", "+%Y-%m-%dT%H:%M:%SZ"},
		}},
	}
}
