package worker

import (
	"encoding/json"
	"io"
)

// runCheckChild is the whole run of a child that checks calls. It answers one after the other; an error of
// one call is in its answer. It returns the exit status.
func runCheckChild(first frame, in io.Reader, stdout io.Writer) int {
	out := &sender{frameWriter{out: stdout}}
	var setup checkSetup
	if err := first.decode(frameCheckSetup, &setup); err != nil {
		return refuse(err)
	}
	e := newEvaluator(setup.Schema, setup.Memory/2)
	frames := make(chan frame, 1)
	out.startWork(setup.Memory, func() int {
		return receive(in, func(f frame) error { frames <- f; return nil })
	}, func(int64) {})
	loading := func() func() {
		out.send(frameLoading, empty{})
		return func() { out.send(frameLoaded, empty{}) }
	}
	for f := range frames {
		var added packageSources
		var removed forgetPackages
		var q checkRequest
		var err error
		switch f.kind {
		case framePackage:
			if err = f.decode(framePackage, &added); err == nil {
				e.addPackage(added.Package, added.Contents)
			}
		case frameForget:
			if err = f.decode(frameForget, &removed); err == nil {
				e.removePackages(removed.Digests)
			}
		default:
			if err = f.decode(frameCheck, &q); err == nil {
				out.send(frameChecked, e.answer(q, loading))
			}
		}
		if err != nil {
			return refuse(err)
		}
	}
	return exitEnded
}

// answer answers one request; loading is as in value.
func (e *evaluator) answer(q checkRequest, loading func() (loaded func())) checkResult {
	check, err := e.value(q.Contract, loading)
	if err != nil {
		return checkResult{Failed: err.Error()}
	}
	filled, found, err := check(json.RawMessage(q.Args))
	if err != nil {
		return checkResult{Failed: err.Error()}
	}
	return checkResult{Filled: filled, Violations: found}
}
