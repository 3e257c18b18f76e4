package worker

import (
	"encoding/json"
	"io"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/registry"
)

// rules is the first message to a child that checks calls.
type rules struct {
	Schema []byte
	// Memory is in bytes, as in CheckerConfig.
	Memory int64
}

// pack brings a package that the child doesn't have, with the contents of its files.
type pack struct {
	Package  registry.Package
	Contents [][]byte
}

// forget names packages by their digests.
type forget struct{ Digests []string }

// question asks for the check of one call.
type question struct {
	Rule rule
	Args []byte
}

// moment is a message that says no more than its kind.
type moment struct{}

// verdict answers a question. Failed is why nothing was decided; empty where something was.
type verdict struct {
	Filled     []byte
	Violations []contract.Violation
	Failed     string
}

// checkCalls is the life of a child that checks calls: it takes one question after the other. What goes wrong with one is
// in its answer.
func checkCalls(first frame, r io.Reader, out io.Writer) int {
	m := &mouth{frameWriter{out: out}}
	var s rules
	if err := first.decode(frameRules, &s); err != nil {
		return refuse(err)
	}
	e := newEvaluator(s.Schema, s.Memory/2)
	frames := make(chan frame, 1)
	m.begins(s.Memory, func() int {
		return receive(r, func(f frame) error { frames <- f; return nil })
	}, func(int64) {})
	loading := func() func() {
		m.send(frameLoading, moment{})
		return func() { m.send(frameLoaded, moment{}) }
	}
	for f := range frames {
		var p pack
		var gone forget
		var q question
		var err error
		switch f.kind {
		case framePackage:
			if err = f.decode(framePackage, &p); err == nil {
				e.take(p.Package, p.Contents)
			}
		case frameForget:
			if err = f.decode(frameForget, &gone); err == nil {
				e.forget(gone.Digests)
			}
		default:
			if err = f.decode(frameCheck, &q); err == nil {
				m.send(frameChecked, e.answer(q, loading))
			}
		}
		if err != nil {
			return refuse(err)
		}
	}
	return exitEnded
}

func (e *evaluator) answer(q question, loading func() (loaded func())) verdict {
	filled, found, err := e.check(q.Rule, json.RawMessage(q.Args), loading)
	if err != nil {
		return verdict{Failed: err.Error()}
	}
	return verdict{Filled: filled, Violations: found}
}
