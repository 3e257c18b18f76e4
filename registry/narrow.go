package registry

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/cache"
	"github.com/catalogd/catalogd/internal/strictjson"
	"github.com/catalogd/catalogd/problem"
)

// maxForms is the maximum number of narrowed and tightened contracts that a registry and its successors cache.
const maxForms = 4096

// form is a tool's contract in some branches, by what they say of it.
type form struct {
	contract *contract.Contract
	args     contract.Spec
}

// forms caches forms by the digest of the tool and what a branch says of its arguments.
type forms = cache.Cache[string, form]

// Shown returns the name by which a branch shows a tool of the catalog.
func (b Branch) Shown(name string) string { return cmp.Or(b.Narrow[name].Name, name) }

// Catalog returns the name in the catalog of what the branch would show under a name; ok is false if the
// branch shows the tool of that name under another.
func (b Branch) Catalog(shown string) (name string, ok bool) {
	for name, n := range b.Narrow {
		if n.Name == shown {
			return name, true
		}
	}
	return shown, b.Shown(shown) == shown
}

// in returns the entry as a branch shows it: with its name and texts, and with its arguments narrowed and
// their keys tightened. The declaration keeps its name in the catalog, by which policies decide.
func (e *Entry) in(b Branch, known *forms) (*Entry, error) {
	n, narrowed := b.Narrow[e.tool.Name]
	to, tightened := b.Strictness[e.tool.Name]
	if !narrowed && !tightened {
		return e, nil
	}
	shown := *e
	shown.tool = e.tool.clone()
	if n.Args != nil || tightened {
		f, err := e.form(n.Args, to, known)
		if err != nil {
			return nil, err
		}
		shown.contract, shown.tool.Args = f.contract, f.args.Clone()
	}
	if n.Args != nil {
		text, err := json.Marshal(n.Args)
		if err != nil {
			return nil, err
		}
		shown.narrowing = strings.TrimPrefix(e.narrowing+"\n"+string(text), "\n")
		at := "narrow." + e.tool.Name + ".args"
		for i, l := range shown.tool.Args.Losses {
			if l.Kind == contract.LossFixed {
				pos := b.At(strings.TrimSuffix(at+"."+l.Path, "."))
				shown.tool.Args.Losses[i].File, shown.tool.Args.Losses[i].Line, shown.tool.Args.Losses[i].Col = pos.File, pos.Line, pos.Col
			}
		}
	}
	shown.name = cmp.Or(n.Name, e.name)
	shown.tool.Description = cmp.Or(n.Description, shown.tool.Description)
	if n.Title != "" {
		shown.tool.Title = n.Title
		annotations, err := retitled(shown.tool.Annotations, n.Title)
		if err != nil {
			return nil, err
		}
		shown.tool.Annotations = annotations
	}
	var err error
	shown.listed, err = shown.listedDigest()
	return &shown, err
}

// retitled replaces the title in a discovered tool's annotations, if they have one.
func retitled(annotations json.RawMessage, title string) (json.RawMessage, error) {
	if annotations == nil {
		return nil, nil
	}
	v, err := strictjson.Decode(annotations, strictjson.Options{MaxDepth: 64})
	o, ok := v.(*strictjson.Object)
	if err != nil || !ok || !o.Has("title") {
		return annotations, err
	}
	o.Set("title", title)
	return strictjson.Append(nil, o), nil
}

// form makes the contract of a narrowing and a strictness; either may be absent.
func (e *Entry) form(n *contract.Narrowing, to contract.Strictness, known *forms) (form, error) {
	key := ""
	if e.tool.Digest != "" {
		text, err := json.Marshal(n)
		if err != nil {
			return form{}, err
		}
		key = strings.Join([]string{e.tool.Digest, e.narrowing, string(e.tool.Args.Strictness), string(to), string(text)}, "\n")
		if f, ok := known.Get(key); ok {
			return f, nil
		}
	}
	args, err := reshaped(e.tool.Args, n, to)
	if err != nil {
		return form{}, err
	}
	c, err := contract.New(args, e.rest.of(args))
	if err != nil {
		return form{}, err
	}
	f := form{c, c.Spec()}
	if key != "" {
		known.Put(key, f)
	}
	return f, nil
}

// reshaped narrows arguments and tightens the rule for their keys. An open contract is closed first, as a
// whole; exact comes last, because what is fixed is no optional argument of a call.
func reshaped(args contract.Spec, n *contract.Narrowing, to contract.Strictness) (_ contract.Spec, err error) {
	if n == nil {
		return args.Tighten(to)
	}
	if to != "" && args.Strictness == contract.Open {
		if args, err = args.Tighten(contract.Closed); err != nil {
			return args, err
		}
		if to == contract.Closed {
			to = ""
		}
	}
	if args, err = args.Narrow(*n); err != nil || to == "" {
		return args, err
	}
	return args.Tighten(to)
}

// Check returns the problems of a branch with the tools of the registry: what it says of tools that don't
// exist, narrowings and strictness rules that don't take anything away or contradict the tool, and names that
// two of its tools would share.
func (r *Registry) Check(b Branch) (problems problem.List) {
	names := slices.Sorted(maps.Keys(b.Strictness))
	for _, name := range slices.Sorted(maps.Keys(b.Narrow)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		field := "narrow." + name
		if _, ok := b.Narrow[name]; !ok {
			field = "strictness." + name
		}
		e, ok := r.index[name]
		if !ok {
			message := "there is no tool " + name + "; declare it, or fix the name"
			if near := Nearest(name, slices.Sorted(maps.Keys(r.index))); near != nil {
				message = "there is no tool " + name + "; did you mean " + near[0] + "?"
			}
			problems.Errorf(problem.UnknownTool, b.At(field), "branches."+b.Name+"."+field, "%s", message)
			continue
		}
		if e.contract == nil {
			continue // New reports why
		}
		problems = append(problems, r.contradictions(b, e)...)
	}
	return append(problems, r.shared(b)...)
}

// contradictions returns the problems of what a branch says of one tool.
func (r *Registry) contradictions(b Branch, e *Entry) (problems problem.List) {
	name := e.tool.Name
	add := func(code problem.Code, field string, also problem.Position, format string, args ...any) {
		problems = append(problems, problem.Problem{
			Code: code, Severity: problem.Error, Position: b.At(field), Path: "branches." + b.Name + "." + field,
			Message: fmt.Sprintf(format, args...), Also: []problem.Position{also},
		})
	}
	n, narrowed := b.Narrow[name]
	field := "narrow." + name
	if narrowed {
		if n.Name != "" && !ValidName(n.Name) {
			add(problem.BadName, field+".name", e.tool.Pos, "%q is not a name of a tool; use a letter or _, then up to 62 letters, digits, _ or -", Shown(n.Name))
		}
		if n.Name == name {
			add(problem.BadNarrowing, field+".name", e.tool.Pos, "this is the tool's own name; leave it out")
		}
		if n == (Narrowing{}) {
			add(problem.BadNarrowing, field, e.tool.Pos, "the narrowing of tool %q changes nothing; leave it out, or write what the branch changes", name)
		}
	}
	_, err := e.in(b, r.forms)
	var wrong *contract.NarrowingError
	switch {
	case err == nil:
		problems = append(problems, r.sameKey(b, e)...)
	case errors.As(err, &wrong):
		for _, f := range wrong.Faults {
			below := argument(f.Pointer)
			add(problem.BadNarrowing, join(field+".args", below), e.tool.At(join("args", below)), "tool %q: %s", name, f)
		}
	case narrowed && n.Args != nil && b.Strictness[name] == "":
		add(problem.BadNarrowing, field+".args", e.tool.At("args"), "tool %q can't be narrowed: %v", name, err)
	default:
		add(problem.ContradictoryField, "strictness."+name, e.tool.At("strictness"),
			"%v; a branch can only ask for more than tool %q does: leave it out, or change the tool", err, name)
	}
	return problems
}

// sameKey reports a narrowing that fixes every argument of a tool's idempotency key: all calls of the branch
// would be the same effect.
func (r *Registry) sameKey(b Branch, e *Entry) (problems problem.List) {
	if b.Narrow[e.tool.Name].Args == nil {
		return nil
	}
	shown, err := e.in(b, r.forms)
	if err != nil || !e.keyFixed(shown) {
		return nil // an error is reported
	}
	field := "narrow." + e.tool.Name + ".args"
	return problem.List{{
		Code: problem.BadNarrowing, Severity: problem.Error, Position: b.At(field), Path: "branches." + b.Name + "." + field,
		Message: fmt.Sprintf("every argument in the idempotencyKey of tool %q is fixed, so that all calls of this branch would be one effect: leave one to the call", e.tool.Name),
		Also:    []problem.Position{e.tool.At("idempotencyKey")},
	}}
}

// shared reports two tools that a branch would show under one name.
func (r *Registry) shared(b Branch) (problems problem.List) {
	at := func(e *Entry) problem.Position {
		if b.Narrow[e.tool.Name].Name != "" {
			return b.At("narrow." + e.tool.Name + ".name")
		}
		return e.tool.Pos
	}
	b.clashes(r, func(first, e *Entry) {
		if b.Narrow[e.tool.Name].Name == "" {
			first, e = e, first // the position is that of the rename
		}
		field := "narrow." + e.tool.Name + ".name"
		problems = append(problems, problem.Problem{
			Code: problem.DuplicateName, Severity: problem.Error, Position: at(e), Path: "branches." + b.Name + "." + field,
			Message: fmt.Sprintf("branch %q would show two tools as %q: %q and %q; choose another name, or hide one",
				b.Name, b.Shown(e.tool.Name), first.tool.Name, e.tool.Name),
			Also: []problem.Position{at(first)},
		})
	})
	return problems
}

// clashes calls report with each two tools that a branch would show under one name because it renames one.
// Names that differ in case only are taken for each other.
func (b Branch) clashes(r *Registry, report func(first, second *Entry)) {
	if !slices.ContainsFunc(slices.Collect(maps.Values(b.Narrow)), func(n Narrowing) bool { return n.Name != "" }) {
		return
	}
	by := map[string]*Entry{}
	for _, e := range r.entries {
		if !b.Admits(e.tool) {
			continue
		}
		key := strings.ToLower(b.Shown(e.tool.Name))
		first, taken := by[key]
		if !taken {
			by[key] = e
		} else if b.Narrow[e.tool.Name].Name != "" || b.Narrow[first.tool.Name].Name != "" {
			report(first, e)
		}
	}
}

// sharedNames returns, in lower case, the names under which a branch would show two tools.
func (b Branch) sharedNames(r *Registry) map[string]bool {
	names := map[string]bool{}
	b.clashes(r, func(first, _ *Entry) { names[strings.ToLower(b.Shown(first.tool.Name))] = true })
	return names
}

// argument returns the path of an argument in a declaration's Fields.
func argument(pointer string) string {
	var path []string
	for _, step := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		if step == "*" {
			continue // the positions of items are those of their members
		}
		path = append(path, strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~"))
	}
	return strings.Join(path, ".")
}

func join(path, below string) string {
	if below == "" {
		return path
	}
	return path + "." + below
}
