package lint

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/catalogd/catalogd/decision/internal/shape"
	"github.com/catalogd/catalogd/decision/internal/source"
	"github.com/catalogd/catalogd/problem"
)

// Arguments describe the arguments of a tool.
type Arguments struct {
	// Schema is the JSON Schema of the arguments.
	Schema json.RawMessage
	// Computed names the fields that are filled in and not in the schema.
	Computed []string
}

func (a Arguments) argType() *argType {
	t := argTypeOf(a.Schema)
	for _, name := range a.Computed {
		if t.fields[name] == nil && !t.any {
			t.fields[name] = &argType{any: true}
		}
	}
	return t
}

// Faults lists which of the values, a JSON object, are unknown to the tool or of another type. A missing
// argument is no fault.
func (a Arguments) Faults(values json.RawMessage) []string {
	var value any
	if len(values) == 0 || json.Unmarshal(values, &value) != nil {
		return nil
	}
	return a.argType().faults("arguments", value)
}

// argumentChecker checks uses of input.arguments against the schemas of the tools for which a rule can be
// true. OPA's type checker does most of it: the policy is compiled once for each set of tools, with the union
// of their schemas.
type argumentChecker struct {
	*applicability
	input    *shape.Shape
	tools    []ToolArguments
	compiler func() *ast.Compiler
	problems problem.List
	reported map[string]bool
}

// ToolArguments is a tool with its arguments; nil where they are not known.
type ToolArguments struct {
	Name      string
	Arguments *Arguments
}

// ArgumentCheck is the part of CheckArguments for one point.
type ArgumentCheck struct {
	Point string
	// Tools are all tools that the point is asked about.
	Tools []ToolArguments
	// Evaluate prepares the evaluation of a set rule of compiled modules. The function that it returns
	// evaluates the rule with input.tool set to the tool at an index of Tools, and nothing else in the input.
	Evaluate func(compiled *ast.Compiler, set ast.Ref) (func(tool int) (ast.Set, error), error)
}

// CheckArguments warns of rules that read arguments which none of their tools has, or compare them with
// another type. compiler returns a new compiler with the built-ins that policies may call.
func (p *Policy) CheckArguments(compiler func() *ast.Compiler, checks ...ArgumentCheck) problem.List {
	reported := map[string]bool{}
	var problems problem.List
	for _, c := range checks {
		a := argumentChecker{
			applicability: p.toolApplicability(c, compiler), input: p.point(c.Point).Input, tools: c.Tools, compiler: compiler, reported: reported,
		}
		a.check()
		problems = append(problems, a.problems...)
	}
	return problems.Sorted()
}

// check checks the rules that read arguments, those that apply to the same tools together.
func (a *argumentChecker) check() {
	rules := map[string][]*ast.Rule{}
	a.each(func(sc *scope) {
		set := a.toolsOf(sc.rule)
		if slices.Contains(set, true) && a.readsInput(sc.rule, []string{"arguments"}, map[*ast.Rule]bool{}) {
			key := fmt.Sprint(set)
			rules[key] = append(rules[key], sc.rule)
		}
	})
	for _, key := range source.SortedKeys(rules) {
		about, types := a.union(a.toolsOf(rules[key][0]))
		if types.any {
			continue
		}
		slices.Sort(about)
		a.typeCheck(rules[key], about, types)
		for _, rule := range rules[key] {
			eachCall(rule, func(terms []*ast.Term) {
				a.compare(a.scope(rule), terms, about, types)
				a.objectGet(a.scope(rule), terms, about, types)
			})
		}
	}
}

// union is the union of the argument types of a set of tools, and their names.
func (a *argumentChecker) union(set toolSet) (about []string, types *argType) {
	types = &argType{object: true, fields: map[string]*argType{}}
	for i, is := range set {
		if !is {
			continue
		}
		tool := a.tools[i]
		if tool.Arguments == nil {
			return nil, &argType{any: true}
		}
		about = append(about, tool.Name)
		types = types.or(tool.Arguments.argType())
	}
	return about, types
}

// typeCheck compiles the policy with the types of the arguments, and reports type errors in the rules.
func (a *argumentChecker) typeCheck(rules []*ast.Rule, about []string, types *argType) {
	input := a.input.Schema(nil)
	input["properties"].(map[string]any)["arguments"] = types.schema()
	schemas := ast.NewSchemaSet()
	schemas.Put(ast.SchemaRootRef, input)
	compiler := a.compiler().WithSchemas(schemas)
	if compiler.Compile(a.modules); !compiler.Failed() {
		return
	}
	for _, err := range compiler.Errors {
		i := slices.IndexFunc(rules, func(r *ast.Rule) bool { return isWithin(r, err.Location) })
		if i < 0 || err.Code != ast.TypeErr {
			continue
		}
		pkg := rules[i].Module.Package.Path.String()
		var missing *ast.RefErrInvalidDetail
		if detail, ok := err.Details.(*ast.RefErrInvalidDetail); ok && detail.Pos < len(detail.Ref) {
			missing = detail
		}
		if missing == nil {
			a.report(problem.ArgumentType, source.Position(err.Location), pkg, forTools(about)+source.Explain(err))
			continue
		}
		name, ok := missing.Ref[missing.Pos].Value.(ast.String)
		if !ok {
			continue
		}
		fields := map[string]*argType{}
		for _, v := range missing.OneOf {
			if field, ok := v.(ast.String); ok && field != noField {
				fields[string(field)] = nil
			}
		}
		in := missing.Ref[:missing.Pos].String()
		a.report(problem.UnknownArgument, source.Position(err.Location), pkg, fmt.Sprintf("%s%s has no %q%s", forTools(about), in, string(name), meantOf(string(name), fields)))
	}
}

func (a *argumentChecker) report(code problem.Code, at problem.Position, pkg, message string) {
	key := at.String() + message
	if !a.reported[key] {
		a.reported[key] = true
		a.problems.Warnf(code, at, pkg, "%s", message)
	}
}

// forTools is the beginning of a message: "for the tool slugify, ".
func forTools(about []string) string {
	switch len(about) {
	case 1:
		return "for the tool " + about[0] + ", "
	case 2, 3:
		return "for the tools " + strings.Join(about, ", ") + ", "
	}
	return fmt.Sprintf("for the %d tools that this rule can be about, ", len(about))
}

// isWithin reports whether a location is in a rule.
func isWithin(rule *ast.Rule, at *ast.Location) bool {
	from := rule.Location
	return at != nil && from != nil && at.File == from.File && at.Offset >= from.Offset && at.Offset <= from.Offset+len(from.Text)
}

// compare checks what OPA's type checker does not: !=, <, > and in between an argument and a constant.
func (a *argumentChecker) compare(sc *scope, terms []*ast.Term, about []string, types *argType) {
	if len(terms) != 3 {
		return
	}
	switch {
	case isOperator(terms[0], ast.Member):
		for _, elem := range inside(terms[2], step{any: true}) {
			a.sameType(sc, terms[0], terms[1], elem, about, types)
		}
	case isOperator(terms[0], ast.NotEqual), isOperator(terms[0], ast.LessThan), isOperator(terms[0], ast.LessThanEq),
		isOperator(terms[0], ast.GreaterThan), isOperator(terms[0], ast.GreaterThanEq):
		a.sameType(sc, terms[0], terms[1], terms[2], about, types)
		a.sameType(sc, terms[0], terms[2], terms[1], about, types)
	}
}

func (a *argumentChecker) sameType(sc *scope, operator, argument, value *ast.Term, about []string, types *argType) {
	found := a.dataflow.origins(sc, argument)
	written := jsonTypeOf(value)
	if len(found) != 1 || written == "" {
		return
	}
	at := found[0]
	if at.root != ast.InputRootDocument.Value || at.keys || at.viaParam || len(at.path) < 2 || at.path[0].name != "arguments" {
		return
	}
	if t := types.at(at.path[1:]); t != nil && !t.may(written) {
		a.report(problem.ArgumentType, source.Position(operator.Location), sc.pkg,
			fmt.Sprintf("%s%s is of type %s, and is compared with a %s", forTools(about), argument, t.noun(), written))
	}
}

// objectGet checks object.get of arguments by a constant key or path: for a name that no tool has, it is
// always the default.
func (a *argumentChecker) objectGet(sc *scope, terms []*ast.Term, about []string, types *argType) {
	if len(terms) != 4 || !isOperator(terms[0], ast.ObjectGet) {
		return
	}
	found := a.dataflow.origins(sc, terms[1])
	if len(found) != 1 {
		return
	}
	at := found[0]
	if at.root != ast.InputRootDocument.Value || at.keys || at.viaParam || len(at.path) == 0 || at.path[0].name != "arguments" {
		return
	}
	keys := []*ast.Term{terms[2]}
	if path, ok := terms[2].Value.(*ast.Array); ok {
		keys = nil
		path.Foreach(func(key *ast.Term) { keys = append(keys, key) })
	}
	t, in := types.at(at.path[1:]), sourceOf(terms[1])
	for _, key := range keys {
		name, ok := key.Value.(ast.String)
		if !ok || t == nil || t.any || t.open || !t.object {
			return
		}
		if t.fields[string(name)] == nil {
			a.report(problem.UnknownArgument, source.Position(key.Location), sc.pkg, fmt.Sprintf("%s%s has no %q%s", forTools(about), in, string(name), meantOf(string(name), t.fields)))
			return
		}
		t, in = t.fields[string(name)], in+"."+string(name)
	}
}

// jsonTypeOf is the JSON type of a scalar constant; empty for any other term.
func jsonTypeOf(t *ast.Term) string {
	switch t.Value.(type) {
	case ast.String:
		return "string"
	case ast.Number:
		return "number"
	case ast.Boolean:
		return "boolean"
	case ast.Null:
		return "null"
	}
	return ""
}
