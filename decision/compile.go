package decision

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"

	"github.com/catalogd/catalogd/decision/internal/source"
	"github.com/catalogd/catalogd/decision/lint"
	"github.com/catalogd/catalogd/problem"
)

// compiledPoint is one point, ready to be evaluated.
type compiledPoint struct {
	spec     pointSpec
	compiler *ast.Compiler
	query    ast.Body
	// cache is nil for points that are asked once a generation.
	cache *answerCache
	// claims are the parts of the principal that the modules read.
	claims []part
	reads  *readSet
	// at is the point's package.
	at problem.Position
	// outputs are where the first rule of each output is.
	outputs map[string]problem.Position
	// fast says that the modules call only fastBuiltins.
	fast bool
	// overdue counts the evaluations that were abandoned and still run.
	overdue atomic.Int32
}

// result is the variable that holds the package's value in the query.
const result = ast.Var("result")

// check reports everything that refuses the policy as a whole, tests included: forbidden built-ins, packages
// that nothing asks, lint, what stock `opa check` would say, and what the policy says about its data.
func check(ctx context.Context, s *source.Source) problem.List {
	var problems problem.List
	everything := maps.Clone(s.Modules)
	maps.Copy(everything, s.Tests)
	for _, file := range source.SortedKeys(everything) {
		module := everything[file]
		problems = append(problems, forbiddenBuiltins(module, module.Package.Path.String())...)
	}
	problems = append(problems, checkPackages(s.Modules)...)
	problems = append(problems, checkTests(s)...)
	problems = append(problems, policyOf(s).References(s.Tests, allowedBuiltins)...)
	problems = append(problems, policyOf(s).Check()...)
	problems = append(problems, (&lint.Policy{Modules: everything, Data: s.Data, Points: lintPoints}).SchemaArguments()...)
	if problems.HasErrors() {
		// Compiling now would say the same again in other words: an undefined function, an undefined
		// reference.
		return problems
	}
	compiler := newCompiler().WithPathConflictsCheck(s.Data.Exists)
	if compiler.Compile(everything); compiler.Failed() {
		policyOf(s).ExplainVariables(compiler.Errors, everything)
		return append(problems, source.Problems(compiler.Errors, source.Root, "")...)
	}
	problems = append(problems, policyOf(s).UnreadData()...)
	problems = append(problems, policyOf(s).UnconditionalAllows()...)
	return append(problems, checkData(ctx, s)...)
}

// compilePoint compiles what the point reaches, with the point's input typed.
func compilePoint(p *lint.Policy, spec pointSpec) (*compiledPoint, problem.List) {
	schemas := ast.NewSchemaSet()
	schemas.Put(ast.SchemaRootRef, spec.input.Schema(nil))
	return compile(source.Closure(p.Modules, spec.path()), spec, schemas)
}

func compile(modules map[string]*ast.Module, spec pointSpec, input *ast.SchemaSet) (*compiledPoint, problem.List) {
	compiler := newCompiler().WithSchemas(input)
	if compiler.Compile(modules); compiler.Failed() {
		return nil, source.Problems(compiler.Errors, source.Root, spec.path().String())
	}
	query, err := compiler.QueryCompiler().Compile(outputsOf(spec))
	if err != nil {
		return nil, source.Problems(fmt.Errorf("asking %s: %w", spec.path(), err), source.Root, spec.path().String())
	}
	read := readSetOf(compiler.Modules)
	return &compiledPoint{
		spec: spec, compiler: compiler, query: query, cache: newAnswerCache(spec, read), claims: claims(spec, read),
		reads: read, at: packagePosition(modules, spec.path()), outputs: outputPositions(modules, spec.path()),
		fast: callsOnlyFast(compiler.Modules),
	}, nil
}

// outputsOf is the query for the value of a point's package, result = {name: value | value =
// data.catalogd.<point>[name]}. The package by itself has the same value, but then the evaluator copies what
// it has at each output.
func outputsOf(spec pointSpec) ast.Body {
	name, value := ast.VarTerm("name"), ast.VarTerm("value")
	output := ast.Equality.Expr(value, ast.NewTerm(spec.path().Append(name)))
	return ast.NewBody(ast.Equality.Expr(ast.NewTerm(result), ast.ObjectComprehensionTerm(name, value, ast.NewBody(output))))
}

// packagePosition is the package clause of the first module of a package.
func packagePosition(modules map[string]*ast.Module, path ast.Ref) problem.Position {
	for _, file := range source.SortedKeys(modules) {
		if m := modules[file]; m.Package.Path.Equal(path) {
			return source.Position(m.Package.Location)
		}
	}
	return problem.Position{}
}

// outputPositions are the positions of the first rule of each name in a package, defaults last.
func outputPositions(modules map[string]*ast.Module, path ast.Ref) map[string]problem.Position {
	first := map[string]problem.Position{}
	for _, defaults := range []bool{false, true} {
		for _, file := range source.SortedKeys(modules) {
			if m := modules[file]; m.Package.Path.Equal(path) {
				for _, rule := range m.Rules {
					if _, ok := first[outputName(rule)]; !ok && rule.Default == defaults {
						first[outputName(rule)] = source.Position(rule.Location)
					}
				}
			}
		}
	}
	return first
}

// lintPoints are the packages that the engine asks: the decision points, the log and the check of the data.
var lintPoints = func() (all []lint.Point) {
	for _, spec := range slices.Concat(points, []pointSpec{logSpec, checkSpec}) {
		all = append(all, lint.Point{Name: string(spec.point), Input: spec.input, Outputs: spec.allOutputs()})
	}
	return all
}()

// policyOf is the policy of a folder, without tests.
func policyOf(s *source.Source) *lint.Policy {
	return &lint.Policy{Modules: s.Modules, Data: s.Data, Points: lintPoints}
}

// newCompiler reports all errors and erases print, so that no argument of a call reaches a log.
func newCompiler() *ast.Compiler {
	return ast.NewCompiler().
		WithCapabilities(capabilities()).
		WithDefaultRegoVersion(ast.RegoV1).
		SetErrorLimit(0)
}

// storeOf is a store of the data, converted once to the values that evaluation reads.
func storeOf(d *source.Data) storage.Store {
	return inmem.NewFromObjectWithOpts(d.Value, inmem.OptRoundTripOnWrite(true), inmem.OptReturnASTValuesOnRead(true))
}
