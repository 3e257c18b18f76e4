package contract

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/contract/internal/jsontype"
	"github.com/catalogd/catalogd/internal/strictjson"
)

// Narrowed is what a narrowed Spec has besides its schema.
type Narrowed struct {
	// Base is the Spec that was narrowed, as JSON, because a type of plain data can't contain itself. Its
	// contract checks every call last, so that nothing passes that it refuses.
	Base json.RawMessage `json:"base"`
	// By is the schema of the narrowing: the arguments that Check returns match it. A const in its properties
	// is a fixed argument, a default is filled in.
	By json.RawMessage `json:"by"`
}

func (n *Narrowed) clone() *Narrowed {
	if n == nil {
		return nil
	}
	return &Narrowed{slices.Clone(n.Base), slices.Clone(n.By)}
}

// base returns the Spec that was narrowed.
func (n *Narrowed) base() (s Spec, err error) {
	if err = json.Unmarshal(n.Base, &s); err != nil {
		err = fmt.Errorf("contract: narrowed: %w", err)
	}
	return s, err
}

// Narrow returns the same contract with some arguments fixed, restricted or described anew. Each keyword of n
// must be at least as strict as the contract's own; every argument that n names must change; and what n
// leaves out stays. The error is a *NarrowingError with all faults.
func (s Spec) Narrow(n Narrowing) (Spec, error) {
	w := &narrower{spec: s}
	var doc any
	var err error
	if s.Upstream {
		doc, err = latest(s.Schema)
	} else {
		doc, err = decodeOrdered(s.Schema)
	}
	top, ok := doc.(*strictjson.Object)
	if err == nil && (!ok || s.Value) {
		err = fmt.Errorf("the contract is not one of an object")
	}
	if err == nil {
		w.valid, err = s.Validator()
	}
	if err != nil {
		return Spec{}, fmt.Errorf("contract: schema: %w", err)
	}
	w.defs = top.Object("$defs")
	frag, ok := w.fragment(n)
	if !ok {
		return Spec{}, w.err()
	}
	r := w.schema(spot{node: top}, frag)
	if len(w.faults) == 0 && !r.changed {
		w.fault("", nothingTaken)
	}
	if len(w.faults) == 0 {
		w.refusedAsFixed(r.by)
	}
	if len(w.faults) > 0 {
		return Spec{}, w.err()
	}
	return w.narrowed(r)
}

// nothingTaken is the fault of a narrowing that a reader would believe to do something.
const nothingTaken = "this takes nothing away from what the tool accepts, and says nothing new: leave it out, or write what the branch changes"

// narrower applies one narrowing to the schema of a contract.
type narrower struct {
	spec   Spec
	defs   *strictjson.Object // of the contract
	valid  *Validator         // of the contract
	said   *Validator         // of the fragment
	faults []NarrowingFault
	losses []Loss
}

func (w *narrower) err() error { return &NarrowingError{sortedFaults(w.faults)} }

func (w *narrower) fault(path, format string, args ...any) {
	w.faults = append(w.faults, NarrowingFault{path, fmt.Sprintf(format, args...)})
}

// narrowed makes the Spec.
func (w *narrower) narrowed(r narrowing) (Spec, error) {
	base, err := json.Marshal(w.spec)
	if err != nil {
		return Spec{}, fmt.Errorf("contract: schema: %w", err)
	}
	s := w.spec.Clone()
	s.WhenClosed = nil
	s.Narrowed = &Narrowed{Base: base, By: appendOrdered(nil, r.by)}
	pruneDefs(r.own)
	if !s.Upstream {
		withoutNotes(r.own, r.fixed)
	}
	if s.Upstream && draftOf(r.own) != draft2020 {
		r.own.Members = slices.Insert(r.own.Members, 0, strictjson.Member{Key: "$schema", Value: "https://json-schema.org/draft/2020-12/schema"})
	}
	s.Schema = appendOrdered(nil, r.own)
	properties, required := r.own.Object("properties"), r.own.List("required")
	fixed := func(name string) bool { return r.by.Object("properties").Object(name).Has("const") }
	s.Fields = slices.DeleteFunc(s.Fields, func(f Field) bool { return fixed(f.Name) })
	for i, f := range s.Fields {
		property, ok := properties.Get(f.Name).(*strictjson.Object)
		if f.Computed || !ok {
			continue
		}
		s.Fields[i].Required = slices.Contains(required, any(f.Name))
		if d, ok := property.Find("default"); ok && !s.NoFill && !s.Fields[i].Required {
			s.Fields[i].Default = strictjson.AppendSorted(nil, d)
		} else {
			s.Fields[i].Default = nil
		}
		if types := w.types(property, 0); types != jsontype.All {
			s.Fields[i].Types = namesOf(types)
		}
	}
	for i, l := range s.Losses {
		if mentionsWord(l.What, r.fixed) {
			s.Losses[i].What = "a constraint that is also about what the branch fixes"
		}
	}
	s.Losses = slices.DeleteFunc(s.Losses, func(l Loss) bool {
		name, _, _ := strings.Cut(l.Path, ".")
		return fixed(name)
	})
	s.Losses = append(s.Losses, w.losses...)
	return s, nil
}

// withoutNotes removes from descriptions the notes of internal/derive ("Also: >start") that mention what is fixed.
func withoutNotes(own *strictjson.Object, fixed []string) {
	eachSchema(own, "", func(o *strictjson.Object, _ string) {
		text, ok := o.Get("description").(string)
		if !ok {
			return
		}
		lines := strings.Split(text, "\n")
		last := lines[len(lines)-1]
		if !strings.HasPrefix(last, "Also: ") || !mentionsWord(last, fixed) {
			return
		}
		if lines = lines[:len(lines)-1]; len(lines) == 0 {
			o.Remove("description")
		} else {
			o.Set("description", strings.Join(lines, "\n"))
		}
	})
}

// pruneDefs removes the definitions that nothing refers to any more, which may describe what is fixed.
func pruneDefs(own *strictjson.Object) {
	defs := own.Object("$defs")
	if defs == nil {
		return
	}
	used := map[string]bool{}
	var visit func(v any)
	visit = func(v any) {
		eachSchema(v, "", func(o *strictjson.Object, _ string) {
			ref, _ := o.Get("$ref").(string)
			if name, ok := strings.CutPrefix(ref, "#/$defs/"); ok {
				if name = first(steps("/" + name)); !used[name] {
					used[name] = true
					visit(defs.Get(name))
				}
			}
		})
	}
	rest := own.Clone()
	rest.Remove("$defs")
	visit(rest)
	kept := &strictjson.Object{}
	for _, m := range defs.Members {
		if used[m.Key] {
			kept.Add(m.Key, m.Value)
		}
	}
	if len(kept.Members) == 0 {
		own.Remove("$defs")
		return
	}
	own.Set("$defs", kept)
}

// sortedFaults orders faults by pointer.
func sortedFaults(all []NarrowingFault) []NarrowingFault {
	slices.SortStableFunc(all, func(a, b NarrowingFault) int { return cmp.Compare(a.Pointer, b.Pointer) })
	return all
}
