package lint

import (
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/catalogd/catalogd/decision/internal/source"
)

// dataflow finds the origins of terms: where their values may come from, without evaluating the policy
// (origins.go). What it can't follow has no origin.
type dataflow struct {
	modules map[string]*ast.Module
	rules   map[string]map[string][]*ast.Rule // by package, then by name
	data    *source.Data
	scopes  map[*ast.Rule]*scope
	calls   map[string][]call // of the policy's own functions, by full name; nil where parameters have no origins
	budget  int               // how many terms may still be followed
}

// call is one call of a function of the policy.
type call struct {
	from *scope
	args []*ast.Term
}

// scope is a rule with the bindings of its imports and variables.
type scope struct {
	rule    *ast.Rule
	pkg     string
	imports map[ast.Var]ast.Ref
	vars    map[ast.Var]binding
}

// binding is the term from which a variable gets its value.
type binding struct {
	term *ast.Term
	how  bound
	nth  int // of a parameter
}

type bound int

const (
	isTerm    bound = iota // x := term
	isElement              // some x in term
	isKey                  // some x, _ in term
	isParam                // f(x)
	isUnclear              // bound more than once
)

func newDataflow(modules map[string]*ast.Module, data *source.Data) *dataflow {
	f := &dataflow{modules: modules, rules: map[string]map[string][]*ast.Rule{}, data: data, scopes: map[*ast.Rule]*scope{}}
	for _, file := range source.SortedKeys(modules) {
		module := modules[file]
		pkg := module.Package.Path.String()
		if f.rules[pkg] == nil {
			f.rules[pkg] = map[string][]*ast.Rule{}
		}
		for _, rule := range module.Rules {
			f.rules[pkg][source.RuleName(rule)] = append(f.rules[pkg][source.RuleName(rule)], rule)
		}
	}
	return f
}

// withParameters gives parameters the origins of the arguments in all calls.
func (f *dataflow) withParameters() *dataflow {
	f.calls = map[string][]call{}
	f.each(func(sc *scope) {
		eachCall(sc.rule, func(terms []*ast.Term) {
			if path, ok := f.function(sc, terms[0]); ok {
				f.calls[path] = append(f.calls[path], call{sc, terms[1:]})
			}
		})
	})
	return f
}

// each visits every rule, in the order of files and lines.
func (f *dataflow) each(visit func(*scope)) {
	for _, file := range source.SortedKeys(f.modules) {
		for _, rule := range f.modules[file].Rules {
			visit(f.scope(rule))
		}
	}
}

// eachCall visits every call and comparison in a rule, nested ones included: the operator first, then its
// operands.
func eachCall(rule *ast.Rule, visit func([]*ast.Term)) {
	ast.WalkExprs(rule, func(x *ast.Expr) bool {
		if terms, ok := x.Terms.([]*ast.Term); ok && len(terms) > 1 {
			visit(terms)
		}
		return false
	})
	ast.WalkTerms(rule, func(t *ast.Term) bool {
		if terms, ok := t.Value.(ast.Call); ok && len(terms) > 1 {
			visit(terms)
		}
		return false
	})
}

func (f *dataflow) scope(rule *ast.Rule) *scope {
	if sc := f.scopes[rule]; sc != nil {
		return sc
	}
	sc := &scope{
		rule: rule, pkg: rule.Module.Package.Path.String(), imports: map[ast.Var]ast.Ref{}, vars: map[ast.Var]binding{},
	}
	f.scopes[rule] = sc
	for _, imported := range rule.Module.Imports {
		if ref, ok := imported.Path.Value.(ast.Ref); ok {
			sc.imports[imported.Name()] = ref
		}
	}
	for i, arg := range rule.Head.Args {
		sc.bind(arg, binding{how: isParam, nth: i})
	}
	ast.WalkExprs(rule, func(x *ast.Expr) bool {
		switch terms := x.Terms.(type) {
		case []*ast.Term:
			if len(terms) == 3 && (isOperator(terms[0], ast.Assign) || isOperator(terms[0], ast.Equality)) {
				sc.bind(terms[1], binding{term: terms[2]})
			}
		case *ast.SomeDecl:
			for _, symbol := range terms.Symbols {
				in, _ := symbol.Value.(ast.Call)
				switch len(in) {
				case 3: // x in xs
					sc.bind(in[1], binding{term: in[2], how: isElement})
				case 4: // k, x in xs
					sc.bind(in[1], binding{term: in[3], how: isKey})
					sc.bind(in[2], binding{term: in[3], how: isElement})
				}
			}
		case *ast.Every:
			if terms.Key != nil {
				sc.bind(terms.Key, binding{term: terms.Domain, how: isKey})
			}
			sc.bind(terms.Value, binding{term: terms.Domain, how: isElement})
		}
		return false
	})
	return sc
}

func (sc *scope) bind(t *ast.Term, b binding) {
	name, ok := t.Value.(ast.Var)
	if !ok {
		return
	}
	if _, twice := sc.vars[name]; twice {
		b = binding{how: isUnclear}
	}
	sc.vars[name] = b
}

// isEquality reports whether an operator is == or =.
func isEquality(t *ast.Term) bool { return isOperator(t, ast.Equal) || isOperator(t, ast.Equality) }

func isOperator(t *ast.Term, b *ast.Builtin) bool {
	ref, ok := t.Value.(ast.Ref)
	return ok && ref.Equal(b.Ref())
}

// function is the full name of the rule of the policy that an operator names; false for a built-in.
func (f *dataflow) function(sc *scope, operator *ast.Term) (string, bool) {
	ref, ok := operator.Value.(ast.Ref)
	if !ok {
		return "", false
	}
	head, ok := ref[0].Value.(ast.Var)
	if !ok {
		return "", false
	}
	if imported, ok := sc.imports[head]; ok {
		ref = imported.Concat(ref[1:])
	} else if f.rules[sc.pkg][string(head)] != nil && len(ref) == 1 {
		return sc.pkg + "." + string(head), true
	}
	path, last := ref[:len(ref)-1], ref[len(ref)-1].Value
	name, ok := last.(ast.String)
	if !ok || f.rules[path.String()][string(name)] == nil {
		return "", false
	}
	return path.String() + "." + string(name), true
}

// byPath returns the rules of a full name (data.catalogd.lib.access.granted) and its last part.
func (f *dataflow) byPath(path string) ([]*ast.Rule, string) {
	i := strings.LastIndex(path, ".")
	return f.rules[path[:i]][path[i+1:]], path[i+1:]
}

// referred returns the rules that a reference begins with; rest says that the reference goes on below them.
func (f *dataflow) referred(sc *scope, ref ast.Ref) (rules []*ast.Rule, rest bool) {
	head, ok := ref[0].Value.(ast.Var)
	if !ok {
		return nil, false
	}
	if _, local := sc.vars[head]; local {
		return nil, false
	}
	if imported, ok := sc.imports[head]; ok {
		ref = imported.Concat(ref[1:])
	} else if rules := f.rules[sc.pkg][string(head)]; rules != nil {
		return rules, len(ref) > 1
	}
	for i := 1; i < len(ref); i++ {
		name, ok := ref[i].Value.(ast.String)
		if !ok {
			break
		}
		if rules := f.rules[ref[:i].String()][string(name)]; rules != nil {
			return rules, i+1 < len(ref)
		}
	}
	return nil, false
}
