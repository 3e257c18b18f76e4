package loader

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"cuelang.org/go/cue"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/commandline"
	"github.com/catalogd/catalogd/internal/derive"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// object is one tool, server or branch while it is read: its fields, each checked.
type object struct {
	u      *unit
	path   string // such as tools.get_weather
	src    registry.Source
	fields map[string]cue.Value // the fields without errors
	sound  bool
}

// object checks every field of v separately, so that an error in one doesn't hide an error in another. The
// fields in open, which only a call fills in, need not be concrete.
func (u *unit) object(path string, v cue.Value, src registry.Source, s *shape, open ...string) *object {
	o := &object{u: u, path: path, src: src, fields: map[string]cue.Value{}, sound: true}
	fields, err := v.Fields()
	if err != nil {
		o.fail(err)
		return o
	}
	for fields.Next() {
		name, fv := fields.Selector().Unquoted(), fields.Value()
		if s.fields[name] == nil {
			o.sound = false
			if below := join(path, name); !u.unknown[below] {
				u.unknown[below] = true
				u.result.problems.Errorf(problem.UnknownField, o.near(fv, name), below, "%s", s.unknownField(name))
			}
			continue
		}
		if name == "name" && !namePattern.MatchString(path[strings.IndexByte(path, '.')+1:]) {
			o.sound = false
			continue // reported as bad_name, which is more precise
		}
		if o.validate(fv, s.fields[name], cue.Concrete(!slices.Contains(open, name))) {
			o.fields[name] = fv
		}
	}
	return o
}

// validate reports the errors of a field; of a list, those of each element.
func (o *object) validate(v cue.Value, s *shape, concrete cue.Option) bool {
	before := o.sound
	o.sound = true
	if v.IncompleteKind() == cue.ListKind || v.Err() != nil {
		for i := 0; ; i++ {
			element := v.LookupPath(cue.MakePath(cue.Index(i)))
			if !element.Exists() {
				break
			}
			if err := element.Validate(concrete); err != nil {
				o.fail(err)
			}
		}
	}
	if o.sound {
		if err := errorsOf(v, s, concrete); err != nil {
			o.fail(err)
		}
	}
	ok := o.sound
	o.sound = ok && before
	return ok
}

func (o *object) fail(err error) {
	o.sound = false
	o.u.errors(err, func(path []string) problem.Position {
		if len(path) < 2 {
			return o.src.Pos
		}
		return o.src.At(strings.Join(path[2:], "."))
	})
}

func (o *object) near(v cue.Value, path string) problem.Position {
	if p, ok := o.src.Fields[path]; ok {
		return p
	}
	if p := derive.Position(v.Pos()); p.IsValid() && p.File != schemaPath {
		return p
	}
	return o.src.Pos
}

func (o *object) errorf(code problem.Code, path, format string, args ...any) {
	o.sound = false
	o.u.result.problems.Errorf(code, o.src.At(path), join(o.path, path), format, args...)
}

// decode reads a field into a Go value. A field that is absent or already reported leaves the value
// unchanged.
func (o *object) decode(name string, into any) {
	v, ok := o.fields[name]
	if !ok {
		return
	}
	if s, ok := into.(*string); ok {
		if text, err := v.String(); err == nil {
			*s = text
			return
		}
	}
	data, err := v.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		o.errorf(code(err.Error(), 0), name, "the value can't be read: %v", err)
	}
}

// duration reads a duration, whose Go syntax the schema has already checked.
func (o *object) duration(name string, into *time.Duration) {
	var text string
	o.decode(name, &text)
	if text == "" {
		return
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		o.errorf(problem.CUEValue, name, "%q is not a duration above zero within the limits; write one such as \"30s\"", text)
		return
	}
	*into = d
}

// one reports whether exactly one of the kinds is set in the field.
func (o *object) one(field string, kinds map[string]bool) bool {
	var given, all []string
	for k, ok := range kinds {
		all = append(all, k)
		if ok {
			given = append(given, k)
		}
	}
	slices.Sort(given)
	slices.Sort(all)
	if _, ok := o.fields[field]; !ok || len(given) == 1 {
		return ok
	}
	if len(given) == 0 {
		o.errorf(problem.MissingField, field, "%s says nothing; write exactly one of %s", field, strings.Join(all, ", "))
	} else {
		o.errorf(problem.ContradictoryField, field, "%s has %s; keep exactly one", field, strings.Join(given, " and "))
	}
	return false
}

// digestOf returns a digest of a declaration's content without its positions.
func digestOf(declaration any) string {
	data, err := json.Marshal(declaration)
	if err != nil {
		panic(fmt.Sprintf("loader: a declaration always encodes: %v", err))
	}
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// tool reads one tool.
func (u *unit) tool(name string, v cue.Value, src registry.Source) {
	o := u.object(join(toolsField, name), v, src, u.compiler.shapes[toolsField], "args", "result")
	t := registry.Tool{Name: name}
	o.decode("title", &t.Title)
	o.decode("description", &t.Description)
	o.decode("effect", &t.Effect)
	o.decode("effectNote", &t.EffectNote)
	o.decode("idempotent", &t.Idempotent)
	o.decode("idempotencyKey", &t.IdempotencyKey)
	o.decode("pre", &t.Pre)
	o.decode("post", &t.Post)
	o.decode("tags", &t.Tags)
	o.decode("deprecated", &t.Deprecated)
	o.decode("examples", &t.Examples)
	o.duration("timeout", &t.Timeout)
	o.binding(&t)
	for i, e := range t.Examples {
		if e.Result != nil && e.Rejected != "" {
			o.errorf(problem.BadExample, fmt.Sprintf("examples.%d", i), "an example has a result or a rejection, not both")
		}
	}
	if _, declared := o.fields["result"]; declared {
		o.decode("resultCheck", &t.ResultCheck)
	}
	strictness := contract.Closed
	o.decode("strictness", &strictness)
	if args, ok := o.fields["args"]; ok {
		if !o.isStruct(args, "args", "args must be a struct: args: {name!: string}") {
			return
		}
		if t.Binding.Func != "" && args.IncompleteKind() == cue.TopKind { // left out: the function has them
			t.Args = contract.Spec{Strictness: strictness}
		} else {
			t.Args = o.contract(args, v.LookupPath(cue.MakePath(cue.Def("Args"))), strictness, "args")
		}
		o.decode("coerce", &t.Args.Coerce)
	}
	if result, ok := o.fields["result"]; ok && o.isResult(result, "result") {
		spec := o.contract(result, cue.Value{}, contract.Closed, "result")
		t.Result = &spec
	}
	o.effect(t)
	o.texts(t)
	if o.sound {
		t.Digest = digestOf(t)
		t.Source = registry.Source{Pos: o.src.Pos, Fields: o.src.Fields, Digest: t.Digest}
		u.result.tools = append(u.result.tools, t)
	}
}

// effect reports a tool that may change something and does not say why it only reads, and a reason that no
// tool needs.
func (o *object) effect(t registry.Tool) {
	what, code := t.Suspect(), ""
	if t.Binding.Exec != nil {
		code = runsArguments(*t.Binding.Exec)
	}
	switch {
	case what != "" && t.EffectNote == "" && (t.Binding.HTTP != nil || code != ""):
		o.u.result.problems.Warnf(problem.SuspectEffect, o.src.At("effect"), join(o.path, "effect"),
			`the tool says that it only reads, but %s; write effect: "write" if that changes anything, or say in effectNote why it does not`, what+code)
	case what == "" && t.EffectNote != "" && o.sound:
		o.u.result.problems.Warnf(problem.UnusedEffectNote, o.src.At("effectNote"), join(o.path, "effectNote"),
			`effectNote is unused: it is for a tool with effect: "read" that sends a POST, PUT, PATCH or DELETE, runs a command, or calls a server's tool; take it away`)
	}
}

// argument matches an element of a command line that a call fills in, and inElement matches a part that it does.
var (
	argument  = regexp.MustCompile(`^\{[^{}\s]+\}$`)
	inElement = regexp.MustCompile(`(^|[^{])\{[^{}\s]+\}`)
)

// runsArguments returns why a command may run code that a call brings; empty if the call brings nothing to it,
// or the command is known to run a fixed program, or is not known.
func runsArguments(e registry.Exec) string {
	filled := argument
	if e.Joined {
		filled = inElement
	}
	why := commandline.Recognise(e.Command, e.Command, e.Argv).RunsCode
	if why == "" || e.Stdin == "none" && !slices.ContainsFunc(e.Argv, filled.MatchString) {
		return ""
	}
	return " with arguments of the call (" + why + ")"
}

// server reads one server.
func (u *unit) server(name string, v cue.Value, src registry.Source) {
	o := u.object(join(serversField, name), v, src, u.compiler.shapes[serversField], "discover")
	s := registry.Server{Name: name}
	o.decode("protocol", &s.Protocol)
	o.decode("prefix", &s.Prefix)
	o.decode("maxConnections", &s.MaxConnections)
	o.decode("isolate", &s.Isolate)
	o.decode("labels", &s.Labels)
	o.decode("eager", &s.Eager)
	o.duration("connectTimeout", &s.ConnectTimeout)
	o.duration("initializeTimeout", &s.InitializeTimeout)
	o.duration("callTimeout", &s.CallTimeout)
	o.discover(&s)
	o.decode("forward", &s.Forward)
	o.transport(&s)
	if o.sound {
		s.Digest = digestOf(s)
		s.Source = registry.Source{Pos: o.src.Pos, Fields: o.src.Fields, Digest: s.Digest}
		u.result.servers = append(u.result.servers, s)
	}
}

// branch reads one branch.
func (u *unit) branch(name string, v cue.Value, src registry.Source) {
	o := u.object(join(branchesField, name), v, src, u.compiler.shapes[branchesField], "narrow")
	b := registry.Branch{Name: name}
	o.decode("description", &b.Description)
	o.decode("labels", &b.Labels)
	o.decode("select", &b.Select)
	o.decode("hide", &b.Hide)
	o.decode("strictness", &b.Strictness)
	o.narrow(&b)
	o.text("description", b.Description)
	if o.sound {
		b.Digest = digestOf(b)
		b.Source = registry.Source{Pos: o.src.Pos, Fields: o.src.Fields, Digest: b.Digest}
		u.result.branches = append(u.result.branches, b)
	}
}
