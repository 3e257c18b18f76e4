package worker

import (
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/registry"
)

// maxValues caps how many contracts' values are kept. Building one again takes a few milliseconds.
const maxValues = 128

// contractKey identifies what CUE checks of one contract: the package by its digest, the path in it, and
// whether unknown keys are allowed, which branches may differ in.
type contractKey struct {
	Digest, Path string
	Open         bool
}

// evaluator checks calls with CUE in this process. It builds a contract's value when it is first needed. It
// is not safe for concurrent use.
type evaluator struct {
	compiler *loader.Compiler
	keep     int64 // bytes in use above which all values are dropped
	packages map[string]registry.Package
	sources  map[string][]byte // by registry.Sum
	values   map[contractKey]loader.Check
	used     []contractKey // the keys of values, the most recently used last
}

func newEvaluator(schema []byte, keep int64) *evaluator {
	return &evaluator{
		compiler: loader.NewCompiler(loader.Config{Schema: schema, Steps: 1}), keep: keep,
		packages: map[string]registry.Package{}, sources: map[string][]byte{},
		values: map[contractKey]loader.Check{},
	}
}

// addPackage adds a package with the contents of its files. Packages share the contents that they have in
// common.
func (e *evaluator) addPackage(p registry.Package, contents [][]byte) {
	e.packages[p.Digest] = p
	for _, data := range contents {
		if sum := registry.Sum(data); e.sources[sum] == nil {
			e.sources[sum] = data
		}
	}
}

// removePackages removes packages, and the sources that no other package has.
func (e *evaluator) removePackages(digests []string) {
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
	e.dropValues(func(r contractKey) bool { return slices.Contains(digests, r.Digest) })
}

// dropValues drops the values of the contracts that match.
func (e *evaluator) dropValues(matches func(contractKey) bool) {
	e.used = slices.DeleteFunc(e.used, func(r contractKey) bool {
		if matches(r) {
			delete(e.values, r)
			return true
		}
		return false
	})
}

// value is the check of a contract. If it must be built first, it calls loading before and loaded after.
func (e *evaluator) value(r contractKey, loading func() (loaded func())) (loader.Check, error) {
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
	source := func(sum string) ([]byte, bool) {
		data, ok := e.sources[sum]
		return data, ok
	}
	check, err := e.compiler.Remainder(p, source, r.Path, r.Open)
	if err != nil {
		return nil, err
	}
	switch {
	case inUse() > e.keep:
		e.dropValues(func(contractKey) bool { return true })
		debug.FreeOSMemory()
	case len(e.used) >= maxValues:
		delete(e.values, e.used[0])
		e.used = slices.Delete(e.used, 0, 1)
	}
	e.values[r] = check
	e.used = append(e.used, r)
	return check, nil
}
