package registry

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/contract/compat"
	"github.com/catalogd/catalogd/internal/strictjson"
	"github.com/catalogd/catalogd/problem"
)

// Complete returns a declared tool whose binding is the function, with what the declaration leaves to the function:
// its args, its result and its title. Args that are declared must accept only what the function's input accepts,
// which is proved; the problems name each argument for which it is not. What has a default in Go must have one in
// the declaration, or be required.
func (f *Function) Complete(t Tool) (Tool, problem.List) {
	var problems problem.List
	errorf := func(code problem.Code, field, format string, args ...any) {
		problems.Errorf(code, t.At(field), "tools."+t.Name+"."+field, format, args...)
	}
	t = t.clone()
	if t.Effect != f.effect {
		errorf(problem.ContradictoryField, "effect", "the tool says effect: %q, and the Go function %q states %q; make them agree",
			t.Effect, f.name, f.effect)
	}
	if t.Args.Schema == nil {
		strictness, coerce := t.Args.Strictness, t.Args.Coerce
		t.Args = f.input.Clone()
		t.Args.Coerce = coerce
		switch strictness {
		case contract.Open:
			errorf(problem.ContradictoryField, "strictness",
				"strictness open would take arguments that the Go function %q does not have; leave it out", f.name)
		case contract.Exact:
			exact, err := t.Args.Tighten(contract.Exact)
			if err != nil {
				errorf(problem.StrictOptional, "strictness", "%v", err)
				break
			}
			t.Args = exact
		}
	} else {
		for _, misfit := range f.misfits(t.Args) {
			field := "args"
			if misfit.argument != "" {
				field += "." + misfit.argument
			}
			const says = "the Go function %q does not take everything that is declared: %s; " +
				"narrow the declaration, or leave args out"
			errorf(problem.FunctionMismatch, field, says, f.name, misfit.text)
		}
	}
	if t.Result == nil && t.Post == "" && f.output != nil {
		result := f.output.Clone()
		t.Result = &result
	}
	if t.Title == "" {
		t.Title = f.title
	}
	t.Digest = f.digest(t.Digest)
	return t, problems
}

// misfit is an argument for which it is not proved that the function takes what is declared.
type misfit struct{ argument, text string }

// misfits compares the arguments as the binding gets them, with defaults filled in, to the function's input.
func (f *Function) misfits(declared contract.Spec) (out []misfit) {
	given, err := asGiven(declared)
	taken, err2 := asGiven(f.input)
	if err := errors.Join(err, err2); err != nil {
		return []misfit{{"", err.Error()}}
	}
	c := compat.Compare(given, taken)
	if !c.Breaking() {
		return nil
	}
	for _, d := range c.Differences {
		if d.Verdict == compat.Identical || d.Verdict == compat.Widened {
			continue
		}
		text := d.Kind + ": " + d.What
		if d.Pointer != "" {
			text = d.Pointer + ": " + text
		}
		if d.Refused != nil {
			text += fmt.Sprintf(", such as %s", d.Refused)
		} else {
			text += ", or it can't be shown that it does"
		}
		first, _, _ := strings.Cut(strings.TrimPrefix(d.Pointer, "/"), "/")
		if _, ok := declared.Field(first); !ok {
			first = ""
		}
		out = append(out, misfit{first, text})
	}
	if out == nil {
		out = []misfit{{"", "it can't be shown that it does"}}
	}
	return out
}

// asGiven returns the contract of arguments as a binding gets them: what has a default is always there, and what is
// computed too.
func asGiven(s contract.Spec) (contract.Spec, error) {
	v, err := strictjson.Decode(s.Schema, strictjson.Options{})
	if err != nil {
		return contract.Spec{}, err
	}
	top, ok := v.(*strictjson.Object)
	if !ok {
		return contract.Spec{}, errors.New("the schema is no object")
	}
	filled(top)
	for _, f := range s.Fields {
		if f.Computed {
			properties := top.Object("properties")
			if properties == nil {
				properties = &strictjson.Object{}
				top.Set("properties", properties)
			}
			properties.Set(f.Name, &strictjson.Object{})
			require(top, f.Name)
		}
	}
	return contract.Spec{
		Schema: strictjson.Append(nil, top), NoFill: true, Strictness: s.Strictness, Remainder: s.Remainder,
	}, nil
}

// filled makes required what is filled in: at the top, and below properties and items.
func filled(o *strictjson.Object) {
	if properties := o.Object("properties"); properties != nil {
		for _, m := range properties.Members {
			below, ok := m.Value.(*strictjson.Object)
			if !ok {
				continue
			}
			if below.Has("default") {
				require(o, m.Key)
			}
			filled(below)
		}
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if below := o.Object(key); below != nil {
			filled(below)
		}
	}
}

func require(o *strictjson.Object, name string) {
	required := o.List("required")
	if !slices.Contains(required, any(name)) {
		o.Set("required", append(slices.Clone(required), any(name)))
	}
}
