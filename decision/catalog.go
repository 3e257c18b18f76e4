package decision

import (
	"context"
	"io/fs"
	"iter"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/catalogd/catalogd/decision/internal/shape"
	"github.com/catalogd/catalogd/decision/internal/source"
	"github.com/catalogd/catalogd/decision/lint"
	"github.com/catalogd/catalogd/problem"
)

// Arguments describe the arguments of a tool.
type Arguments = lint.Arguments

// Catalog is what a policy decides about, for CheckCatalog.
type Catalog struct {
	// Tools, Branches and Servers are all that is declared.
	Tools    []Tool
	Branches []Branch
	Servers  []string
	// Arguments are those of the tools, by name. They are checked only if they are known for all tools.
	Arguments map[string]lint.Arguments
	// Prompts says that a server provides prompts, whose arguments are those of no tool.
	Prompts bool
	// Incomplete says that servers have tools that are not known yet; names of tools and tags are then not
	// checked.
	Incomplete bool
	// Trusted names the trust entries through which something is reached.
	Trusted []string
	// Reached are the questions that the connect decision is asked for what is declared.
	Reached []ConnectInput
	// Lacking says that some of it is left out of Reached, because its command can't be run on this machine.
	Lacking bool
	// Principals are fixtures of callers; without any, names of principals and rules about them are not
	// checked.
	Principals []Principal
	// Cases are what decision tables ask: each a ConnectInput, ListInput, CallInput or ReleaseInput.
	Cases []any
	// Shipped is the root of the starter catalog; rules that are unchanged from there may be never true. It
	// may be nil.
	Shipped fs.FS
}

// CheckCatalog warns of what the policy says about names and arguments that the catalog doesn't have, of
// trust entries through which nothing is reached, of rules that are true for nothing that is declared, and of
// tools with a side effect that nothing releases. It asks up to maxAsked questions: for checks, not for
// reloads.
func (e *Engine) CheckCatalog(ctx context.Context, c Catalog) problem.List {
	return slices.Concat(
		e.policy.CheckNames(c.names()), e.checkArguments(ctx, c), e.policy.UnusedTrust(c.Trusted), e.neverTrue(ctx, c), e.unreleased(c),
		constantOutputs(e.policy.Modules),
	).Sorted()
}

// unreleased warns where the catalog has tools with a side effect and the policy no package that releases
// their intents.
func (e *Engine) unreleased(c Catalog) (problems problem.List) {
	write := slices.IndexFunc(c.Tools, func(t Tool) bool { return t.Effect == "write" })
	if e.points[Release] == nil && write >= 0 {
		problems.Warnf(problem.PolicyPoint, problem.Position{File: source.Root}, "data.catalogd."+string(Release),
			"the package is missing, so every call of a tool with a side effect is refused (%q is one): write `package catalogd.%s` with `default allow := false` and what may run (`catalogd init` writes one)",
			c.Tools[write].Name, Release)
	}
	return problems
}

// maxAsked is how many questions are asked to find rules that are never true. If there are more, none is
// reported: a rule may be true for a question that was left out.
const maxAsked = 50_000

// evaluated are the points that can be asked about all that is declared.
var evaluated = []Point{Connect, List, Call, Release}

// unknown are the fields of the inputs of List, Call and Release that have no value before a call.
func (c Catalog) unknown() (fields []string) {
	for _, point := range []Point{List, Call, Release} {
		spec, _ := specOf(point)
		for _, f := range spec.input.Fields {
			switch {
			case f.Name == "branch", f.Name == "tool", f.Name == "principal" && len(c.Principals) > 0:
			default:
				fields = append(fields, f.Name)
			}
		}
	}
	return fields
}

// asked are the evaluated points with at least one question.
func (c Catalog) asked() (asked []string) {
	for _, point := range evaluated {
		if point == Connect && len(c.Reached) > 0 && !c.Lacking || point != Connect && len(c.Tools) > 0 && len(c.Branches) > 0 {
			asked = append(asked, string(point))
		}
	}
	return asked
}

// questions are those of decision tables, and all that can be asked about what is declared.
func (c Catalog) questions(principals []Principal) iter.Seq2[Point, any] {
	return func(yield func(Point, any) bool) {
		for _, in := range c.Cases {
			point := Connect
			switch in.(type) {
			case ListInput:
				point = List
			case CallInput:
				point = Call
			case ReleaseInput:
				point = Release
			}
			if !yield(point, in) {
				return
			}
		}
		for _, in := range c.Reached {
			if !yield(Connect, in) {
				return
			}
		}
		for _, branch := range c.Branches {
			for _, tool := range c.Tools {
				for _, who := range principals {
					if !yield(List, ListInput{Branch: branch, Tool: tool, Principal: who}) ||
						!yield(Call, CallInput{Branch: branch, Tool: tool, Principal: who, Time: time.Unix(0, 0)}) {
						return
					}
					if tool.Effect == "write" && !yield(Release, ReleaseInput{Branch: branch, Tool: tool, Principal: who, Intent: NewIntent(time.Unix(0, 0)), Time: time.Unix(0, 0)}) {
						return
					}
				}
			}
		}
	}
}

// traceAll evaluates a point with every definition of every rule: without early exit and rule indexes.
func (e *Engine) traceAll(ctx context.Context, point Point, in any, tracer topdown.QueryTracer) error {
	p := e.points[point]
	input, err := p.spec.input.Value(reflect.ValueOf(in))
	if err != nil {
		return err
	}
	return e.runQuery(ctx, p, input, func(query *topdown.Query) error {
		return query.WithQueryTracer(tracer).WithEarlyExit(false).WithIndexing(false).Iter(ctx, func(topdown.QueryResult) error { return nil })
	})
}

// names are the names of each kind, with the empty one where an input may have none.
func (c Catalog) names() lint.Names {
	names := lint.Names{}
	names.Add("branch")
	names.Add("label")
	names.Add("label:*")
	names.Add("server", append([]string{""}, c.Servers...)...)
	names.Add("trust", append([]string{""}, c.Trusted...)...)
	for _, b := range c.Branches {
		names.Add("branch", b.Name)
		for label, value := range b.Labels {
			names.Add("label", label)
			names.Add("label:*", value)
			names.Add("label:"+label, value)
		}
	}
	for _, p := range c.Principals {
		names.Add("principal", p.Name, Local().Name)
		names.Add("group", p.Groups...)
	}
	if c.Incomplete {
		return names
	}
	names.Add("tool", "") // that of a resource or a prompt
	names.Add("tag")
	names.Add("subject", c.Servers...)
	for _, t := range c.Tools {
		names.Add("tool", t.Name)
		names.Add("subject", t.Name)
		names.Add("tag", t.Tags...)
	}
	return names
}

// checkArguments checks the rules of each point with arguments in its input (lint.Policy.CheckArguments).
func (e *Engine) checkArguments(ctx context.Context, c Catalog) problem.List {
	if c.Incomplete || c.Arguments == nil {
		return nil
	}
	var checks []lint.ArgumentCheck
	for _, point := range []Point{Call, Result, Release} {
		if e.points[point] == nil {
			continue
		}
		tools := c.Tools
		if point == Release { // asked about tools with a side effect alone
			tools = slices.DeleteFunc(slices.Clone(tools), func(t Tool) bool { return t.Effect != "write" })
		}
		check := lint.ArgumentCheck{Point: string(point)}
		for _, t := range tools {
			of := lint.ToolArguments{Name: t.Name}
			if takes, known := c.Arguments[t.Name]; known {
				of.Arguments = &takes
			}
			check.Tools = append(check.Tools, of)
		}
		if c.Prompts && point == Call { // arguments of a prompt are not known
			tools = append(slices.Clone(tools), Tool{Tags: []string{}})
			check.Tools = append(check.Tools, lint.ToolArguments{})
		}
		check.Evaluate = func(compiled *ast.Compiler, set ast.Ref) (func(int) (ast.Set, error), error) {
			query, err := compiled.QueryCompiler().Compile(ast.NewBody(ast.Equality.Expr(ast.NewTerm(result), ast.NewTerm(set))))
			if err != nil {
				return nil, err
			}
			p := &compiledPoint{compiler: compiled, query: query}
			return func(tool int) (ast.Set, error) { return e.setFor(ctx, p, tools[tool]) }, nil
		}
		checks = append(checks, check)
	}
	return e.policy.CheckArguments(newCompiler, checks...)
}

// setFor evaluates a query whose result is a set, with the tool alone in the input.
func (e *Engine) setFor(ctx context.Context, p *compiledPoint, tool Tool) (ast.Set, error) {
	value, err := toolShape.Value(reflect.ValueOf(tool))
	if err != nil {
		return nil, err
	}
	set := ast.NewSet() // owned by the evaluation until it has ended
	input := ast.ObjectTerm(ast.Item(ast.InternedTerm("tool"), value))
	err = e.runQuery(ctx, p, input, func(query *topdown.Query) error {
		return query.Iter(ctx, func(r topdown.QueryResult) error {
			if found, ok := r[result].Value.(ast.Set); ok {
				set = found
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return set, nil
}

var toolShape = shape.Of[Tool]()

// neverTrue warns of rules that were true for no declared tool, branch and principal, nor in a case of a
// decision table (lint.Coverage).
func (e *Engine) neverTrue(ctx context.Context, c Catalog) problem.List {
	var exempt map[string]*ast.Module
	if c.Shipped != nil {
		s, _ := source.Read(ctx, c.Shipped, capabilities())
		exempt = s.Modules
	}
	w := e.policy.NewCoverage(c.asked(), c.unknown(), exempt)
	if all, late := e.askAll(ctx, c, w); !all {
		return late
	}
	return w.Problems()
}

// askAll asks everything until every rule has been true. It reports false where that can't be done: there is
// too much to ask, or an evaluation failed; where it is one that did not end in time, late says so.
func (e *Engine) askAll(ctx context.Context, c Catalog, w *lint.Coverage) (all bool, late problem.List) {
	principals := c.Principals
	if len(principals) == 0 {
		principals = []Principal{Local()}
	}
	asked := 0
	for point, in := range c.questions(principals) {
		switch {
		case w.Complete():
			return true, nil
		case !w.Awaits(string(point)):
			continue
		case asked == maxAsked:
			return false, nil
		}
		asked++
		if err := e.traceAll(ctx, point, in, w); err != nil {
			if d := e.failure(ctx, point, err); d.Code == PolicyTimeout {
				late.Errorf(problem.PolicyTimeout, problem.Position{File: source.Root}, "data.catalogd."+string(point),
					"rules that are never true could not be looked for: %s; make the rules that the point asks cheaper", strings.Join(d.Reasons, "; "))
			}
			return false, late
		}
	}
	return true, nil
}
