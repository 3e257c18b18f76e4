package worker

import (
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/registry"
)

// mostValues caps how many contracts' values are kept built. One takes a few milliseconds to build again.
const mostValues = 128

// rule names one contract's remainder: a package by its digest, the path in it, and whether further keys pass, which is
// another matter in a branch that is stricter.
type rule struct {
	Digest, Path string
	Open         bool
}

// evaluator checks calls with CUE in this process, one at a time. It builds a contract's value when it is first asked for.
type evaluator struct {
	compiler *loader.Compiler
	keep     int64 // bytes above which no built value is kept
	packages map[string]registry.Package
	sources  map[string][]byte // by registry.Sum
	values   map[rule]loader.Check
	used     []rule // the keys of values, the last used last
}

func newEvaluator(schema []byte, keep int64) *evaluator {
	return &evaluator{
		compiler: loader.NewCompiler(loader.Config{Schema: schema, Steps: 1}), keep: keep,
		packages: map[string]registry.Package{}, sources: map[string][]byte{}, values: map[rule]loader.Check{},
	}
}

// take takes in a package with its sources, of which packages have many in common.
func (e *evaluator) take(p registry.Package, contents [][]byte) {
	e.packages[p.Digest] = p
	for _, data := range contents {
		if sum := registry.Sum(data); e.sources[sum] == nil {
			e.sources[sum] = data
		}
	}
}

// forget drops packages, and the sources that no other has.
func (e *evaluator) forget(digests []string) {
	for _, d := range digests {
		delete(e.packages, d)
	}
	kept := map[string][]byte{}
	for _, p := range e.packages {
		for _, f := range p.Files {
			kept[f.Sum] = e.sources[f.Sum]
		}
	}
	e.sources = kept
	e.drop(func(r rule) bool { return slices.Contains(digests, r.Digest) })
}

func (e *evaluator) drop(which func(rule) bool) {
	e.used = slices.DeleteFunc(e.used, func(r rule) bool {
		if which(r) {
			delete(e.values, r)
			return true
		}
		return false
	})
}

// value is the contract's, built if need be between the calls of loading and what it returns.
func (e *evaluator) value(r rule, loading func() (loaded func())) (loader.Check, error) {
	if check, ok := e.values[r]; ok {
		if i := slices.Index(e.used, r); i < len(e.used)-1 {
			e.used = append(slices.Delete(e.used, i, i+1), r)
		}
		return check, nil
	}
	loaded := loading()
	defer loaded()
	p, ok := e.packages[r.Digest]
	if !ok {
		return nil, fmt.Errorf("the package of %s is not here", r.Path)
	}
	check, err := e.compiler.Remainder(p, func(sum string) ([]byte, bool) { data, ok := e.sources[sum]; return data, ok }, r.Path, r.Open)
	if err != nil {
		return nil, err
	}
	switch {
	case inUse() > e.keep:
		e.drop(func(rule) bool { return true })
		debug.FreeOSMemory()
	case len(e.used) >= mostValues:
		delete(e.values, e.used[0])
		e.used = slices.Delete(e.used, 0, 1)
	}
	e.values[r] = check
	e.used = append(e.used, r)
	return check, nil
}

// check answers one call.
func (e *evaluator) check(r rule, args json.RawMessage, loading func() (loaded func())) (json.RawMessage, []contract.Violation, error) {
	check, err := e.value(r, loading)
	if err != nil {
		return nil, nil, err
	}
	return check(args)
}
