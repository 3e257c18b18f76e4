package decision

import (
	"context"
	"fmt"
	"maps"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"

	"github.com/catalogd/catalogd/problem"
)

// asked is one enforced point, ready to be evaluated.
type asked struct {
	spec     pointSpec
	compiler *ast.Compiler
	query    ast.Body
	// settled is nil where each question is evaluated.
	settled *settled
	// claims are the parts of the principal that the point reads.
	claims []part
	read   *reads
}

// result is the variable that holds the package's value in the query.
const result = ast.Var("result")

// check reports everything that refuses the policy as a whole, tests included: forbidden built-ins, packages that nobody
// asks, what stock `opa check` would say, and what the policy itself says about its data.
func check(ctx context.Context, s *source) problem.List {
	var problems problem.List
	everything := maps.Clone(s.modules)
	maps.Copy(everything, s.tests)
	for _, file := range sortedKeys(everything) {
		module := everything[file]
		problems = append(problems, forbiddenBuiltins(module, module.Package.Path.String())...)
	}
	problems = append(problems, checkPackages(s.modules)...)
	problems = append(problems, checkImports(everything)...)
	problems = append(problems, lint(s.modules, s.data)...)
	if problems.HasErrors() {
		// Compiling now would say the same again in other words: an undefined function, an undefined reference.
		return problems
	}
	compiler := newCompiler().WithPathConflictsCheck(s.data.exists)
	if compiler.Compile(everything); compiler.Failed() {
		problems = append(problems, regoProblems(compiler.Errors, root, "")...)
		return problems
	}
	return append(problems, checkData(ctx, s)...)
}

// compilePoint compiles what the point reaches, with the point's input typed.
func compilePoint(s *source, spec pointSpec) (*asked, problem.List) {
	schemas := ast.NewSchemaSet()
	schemas.Put(ast.SchemaRootRef, spec.input.schema(nil))
	return compile(closure(s.modules, spec.path()), spec, schemas)
}

func compile(modules map[string]*ast.Module, spec pointSpec, input *ast.SchemaSet) (*asked, problem.List) {
	compiler := newCompiler().WithSchemas(input)
	if compiler.Compile(modules); compiler.Failed() {
		return nil, regoProblems(compiler.Errors, root, spec.path().String())
	}
	query, err := compiler.QueryCompiler().Compile(ast.NewBody(ast.Equality.Expr(ast.NewTerm(result), ast.NewTerm(spec.path()))))
	if err != nil {
		return nil, regoProblems(fmt.Errorf("asking %s: %w", spec.path(), err), root, spec.path().String())
	}
	read := inputsRead(compiler.Modules)
	return &asked{
		spec: spec, compiler: compiler, query: query, settled: settle(spec, read), claims: claims(spec, read),
		read: read,
	}, nil
}

// newCompiler stops at no number of errors and erases print, so that no argument of a call reaches a log.
func newCompiler() *ast.Compiler {
	return ast.NewCompiler().
		WithCapabilities(capabilities()).
		WithDefaultRegoVersion(ast.RegoV1).
		SetErrorLimit(0)
}

// exists reports whether data stands at the path, for OPA's check that rules don't hide data.
func (d *document) exists(path []string) (bool, error) {
	var value any = d.value
	for _, key := range path {
		object, ok := value.(map[string]any)
		if !ok {
			return false, nil
		}
		if value, ok = object[key]; !ok {
			return false, nil
		}
	}
	return true, nil
}

// store holds the data, converted once to what evaluation reads.
func (d *document) store() storage.Store {
	return inmem.NewFromObjectWithOpts(d.value, inmem.OptRoundTripOnWrite(true), inmem.OptReturnASTValuesOnRead(true))
}
