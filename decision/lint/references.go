package lint

import (
	"cmp"
	"fmt"
	"maps"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/catalogd/catalogd/decision/internal/source"
	"github.com/catalogd/catalogd/problem"
)

// References reports what OPA takes for undefined or says without a remedy: a rule that its package doesn't
// have, a package that doesn't exist, a function that is neither a built-in nor a rule. Each is one error,
// however often it is referred to. A path of the data that no file gives may be meant, so it is a warning, of
// served modules only, and where a similar path exists or nothing of the document does. tests are checked
// against all modules, served ones against served ones; builtins are those that a policy may call.
func (p *Policy) References(tests map[string]*ast.Module, builtins []string) problem.List {
	r := references{data: p.Data.Value, builtins: builtins, found: map[string]*problem.Problem{}}
	r.names = namesOf(p.Modules, p.Points)
	r.modules(p.Modules, true)
	everything := maps.Clone(p.Modules)
	maps.Copy(everything, tests)
	r.names = namesOf(everything, p.Points)
	r.modules(tests, false)
	var problems problem.List
	for _, key := range source.SortedKeys(r.found) {
		problems = append(problems, *r.found[key])
	}
	return problems
}

// maxAlso is how many further positions of one reference are reported.
const maxAlso = 5

// references collects the references that lead nowhere.
type references struct {
	names    *names
	data     map[string]any
	builtins []string
	found    map[string]*problem.Problem
}

func (r *references) modules(modules map[string]*ast.Module, served bool) {
	for _, file := range source.SortedKeys(modules) {
		module := modules[file]
		in := referringModule{references: r, module: module, served: served, imports: map[ast.Var]ast.Ref{}}
		in.own = r.names.add(source.PackageNames(module.Package.Path))
		for _, imported := range module.Imports {
			if ref, ok := imported.Path.Value.(ast.Ref); ok && ref[0].Equal(ast.DefaultRootDocument) {
				in.imports[imported.Name()] = ref
				in.path(ref, 1, false)
			}
		}
		for _, rule := range module.Rules {
			in.rule(rule)
		}
	}
}

type referringModule struct {
	*references
	module  *ast.Module
	own     *names
	imports map[ast.Var]ast.Ref
	served  bool
}

func (m *referringModule) rule(rule *ast.Rule) {
	local := declared(rule)
	called := map[*ast.Term]bool{}
	replaced := map[*ast.Term]bool{} // by `with`, which may give data that no file gives
	ast.NewGenericVisitor(func(x any) bool {
		switch x := x.(type) {
		case *ast.With:
			replaced[x.Target] = true
		case *ast.Expr:
			if terms, ok := x.Terms.([]*ast.Term); ok {
				called[terms[0]] = true
			}
		case ast.Call:
			called[x[0]] = true
		}
		return false
	}).Walk(rule)
	ast.WalkTerms(rule, func(t *ast.Term) bool {
		ref, ok := t.Value.(ast.Ref)
		if !ok {
			return false
		}
		head, ok := ref[0].Value.(ast.Var)
		switch imported, isImported := m.imports[head]; {
		case !ok:
		case called[t] && (local[head] || ref[0].Equal(ast.InputRootDocument)):
			m.method(ref)
		case local[head]:
		case isImported:
			m.path(imported.Concat(ref[1:]), len(imported), called[t])
		case m.own.at(string(head)) != nil && !ref[0].Equal(ast.DefaultRootDocument):
			m.path(append(m.module.Package.Path.Append(ast.StringTerm(string(head))), ref[1:]...), len(m.module.Package.Path)+1, called[t])
		case ref[0].Equal(ast.DefaultRootDocument) && !replaced[t]:
			m.path(ref, 1, called[t])
		case called[t] && ast.BuiltinMap[ref.String()] == nil:
			m.unknownFunction(ref)
		}
		return false
	})
}

// declared are the variables of a rule that hide imports and rules of the same name.
func declared(rule *ast.Rule) map[ast.Var]bool {
	found := map[ast.Var]bool{}
	add := func(t *ast.Term) {
		ast.WalkVars(t, func(v ast.Var) bool { found[v] = true; return false })
	}
	for _, arg := range rule.Head.Args {
		add(arg)
	}
	ast.WalkExprs(rule, func(x *ast.Expr) bool {
		switch terms := x.Terms.(type) {
		case []*ast.Term:
			if len(terms) == 3 && isOperator(terms[0], ast.Assign) {
				add(terms[1])
			}
		case *ast.SomeDecl:
			for _, symbol := range terms.Symbols {
				if in, ok := symbol.Value.(ast.Call); ok { // k, v in xs: all but the operator and xs
					for _, t := range in[1 : len(in)-1] {
						add(t)
					}
					continue
				}
				add(symbol)
			}
		case *ast.Every:
			if terms.Key != nil {
				add(terms.Key)
			}
			add(terms.Value)
		}
		return false
	})
	return found
}

// path reports the first key of a path of data that nothing gives. What an import has, up to from, is
// reported at the import.
func (m *referringModule) path(ref ast.Ref, from int, called bool) {
	keys := constants(ref[1:])
	at, data := m.names, any(m.data)
	for i, key := range keys {
		object, _ := data.(map[string]any)
		next := at.at(key)
		below, given := object[key]
		switch {
		case next == nil && !given:
			if i+1 >= from {
				m.missing(ref[i+1], keys, i, at, object, called && i+1 == len(keys))
			}
			return
		case next != nil && next.isRule:
			return
		case next == nil:
			if _, ok := below.(map[string]any); !ok { // a list, which is read by index, or a scalar
				return
			}
		}
		at, data = next, below
	}
}

// missing reports that keys[:i], which are in packages or in the data, have no keys[i].
func (m *referringModule) missing(t *ast.Term, keys []string, i int, at *names, data map[string]any, called bool) {
	key, path := keys[i], source.Path(keys[:i+1])
	var rules map[string]bool
	if at != nil {
		rules = keysOf(at.below)
	}
	switch {
	case data == nil && at != nil && at.isOwner:
		kind := "rule"
		if called {
			kind = "function"
		}
		m.report(t, path, problem.Error, problem.RegoCompile, "package %s has no %s %q%s",
			strings.Join(keys[:i], "."), kind, key, cmp.Or(source.DidYouMean(key, rules), listed(rules)))
	case m.names.elsewhere(keys, i) != "":
		m.report(t, path, problem.Error, problem.RegoCompile, "there is no %s; did you mean %s?", path, m.names.elsewhere(keys, i))
	case data == nil || source.DidYouMean(key, rules) != "":
		m.report(t, path, problem.Error, problem.RegoCompile, "there is no package %s%s",
			path, cmp.Or(source.DidYouMean(key, rules), ": fix the name, or write the package"))
	case m.served:
		hint := source.DidYouMean(key, keysOf(data))
		if hint == "" && i == 0 && !isLibrary(source.Position(t.Location).File) {
			hint = fmt.Sprintf(": write policy/%s/data.yaml, or fix the name", key)
		}
		if hint != "" {
			m.report(t, path, problem.Warning, problem.PolicyData, "no data file gives %s, so it is undefined%s", path, hint)
		}
	}
}

// isLibrary reports whether a file belongs to the library of the shipped policy, which reads data that may be
// absent.
func isLibrary(file string) bool {
	return strings.HasPrefix(file, source.Root+"/catalogd/") || strings.HasPrefix(file, source.Root+"/lib/")
}

// report adds a problem, or a further position to the one about the same name.
func (r *references) report(t *ast.Term, name string, severity problem.Severity, code problem.Code, format string, args ...any) {
	pos := source.Position(t.Location)
	if first := r.found[name]; first != nil {
		if len(first.Also) < maxAlso && pos != first.Position {
			first.Also = append(first.Also, pos)
		}
		return
	}
	r.found[name] = &problem.Problem{Code: code, Severity: severity, Position: pos, Message: fmt.Sprintf(format, args...)}
}
