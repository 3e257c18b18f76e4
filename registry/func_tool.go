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
			field := misfit.below("args")
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

// CheckResult returns a problem for each part of a declared result of which it is not proved that everything that the
// function returns fits it. A result that something else makes of what it returns (post, Processor.After) is not for
// CheckResult, and of one that is not held to the declaration (resultCheck) nothing is said. What is known of an output
// of type Result or any is what each call returns.
func (f *Function) CheckResult(t Tool) (problems problem.List) {
	if t.Result == nil || f.produces == nil || t.Output() == nil {
		return nil
	}
	const says = "the Go function %q may return what is not declared: %s (before: the declaration, now: the Go type); " +
		"declare what the type has, or leave result out: it is then the function's"
	for _, m := range misfitsOf(compat.CompareResults(*t.Result, *f.produces), *t.Result) {
		field := m.below("result")
		problems.Errorf(problem.FunctionMismatch, t.At(field), "tools."+t.Name+"."+field, says, f.name, m.text)
	}
	return problems
}

// misfit is a field, or the whole if it is empty, for which it is not proved that the function takes or returns what
// is declared.
type misfit struct{ field, text string }

// below returns the path of the field below args or result.
func (m misfit) below(path string) string {
	if m.field != "" {
		path += "." + m.field
	}
	return path
}

// misfits compares the arguments, as the binding gets them with defaults filled in, to the function's input.
func (f *Function) misfits(declared contract.Spec) (out []misfit) {
	given, err := asGiven(declared)
	taken, err2 := asGiven(f.input)
	if err := errors.Join(err, err2); err != nil {
		return []misfit{{"", err.Error()}}
	}
	return misfitsOf(compat.Compare(given, taken), declared)
}

// misfitsOf returns what is breaking in a comparison of what is declared with what the function has.
func misfitsOf(c compat.Comparison, declared contract.Spec) (out []misfit) {
	if !c.Breaking() {
		return nil
	}
	fits := compat.Widened
	if c.Results {
		fits = compat.Narrowed
	}
	for _, d := range c.Differences {
		if d.Verdict == compat.Identical || d.Verdict == fits {
			continue
		}
		text, witness := d.Kind+": "+d.What, d.Refused
		if d.Pointer != "" {
			text = d.Pointer + ": " + text
		}
		if c.Results {
			witness = d.Added
		}
		if witness != nil {
			text += fmt.Sprintf(", such as %s", witness)
		} else {
			text += ", and that the declaration and the function agree can't be shown"
		}
		first, _, _ := strings.Cut(strings.TrimPrefix(d.Pointer, "/"), "/")
		if _, ok := declared.Field(first); !ok {
			first = ""
		}
		out = append(out, misfit{first, text})
	}
	if out == nil {
		out = []misfit{{"", "that the declaration and the function agree can't be shown"}}
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
