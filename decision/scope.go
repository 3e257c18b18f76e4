package decision

import (
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// A follower says what the terms of a policy stand for, as it is written and without evaluating it: a place in the input, a
// place in the data, or a value that is written out. It follows local variables, `some` and `every`, imports, and rules;
// what it can't follow stands for nothing, so what is built on it (lint.go, names.go) says too little and never too much.
type follower struct {
	modules map[string]*ast.Module
	rules   map[string]map[string][]*ast.Rule // by package, then by name
	data    *document
	scopes  map[*ast.Rule]*scope
	calls   map[string][]call // of the policy's own functions, by their full name; nil where parameters stand for nothing
	budget  int
}

// call is one use of a function.
type call struct {
	from *scope
	args []*ast.Term
}

// scope is a rule with what its variables stand for.
type scope struct {
	rule    *ast.Rule
	pkg     string
	imports map[ast.Var]ast.Ref
	vars    map[ast.Var]binding
}

// binding is what a variable gets its value from.
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
	isUnclear              // two of these
)

func newFollower(modules map[string]*ast.Module, data *document) *follower {
	f := &follower{modules: modules, rules: map[string]map[string][]*ast.Rule{}, data: data, scopes: map[*ast.Rule]*scope{}}
	for _, file := range sortedKeys(modules) {
		module := modules[file]
		pkg := module.Package.Path.String()
		if f.rules[pkg] == nil {
			f.rules[pkg] = map[string][]*ast.Rule{}
		}
		for _, rule := range module.Rules {
			f.rules[pkg][ruleName(rule)] = append(f.rules[pkg][ruleName(rule)], rule)
		}
	}
	return f
}

// withParameters makes parameters stand for what functions are called with.
func (f *follower) withParameters() *follower {
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
func (f *follower) each(visit func(*scope)) {
	for _, file := range sortedKeys(f.modules) {
		for _, rule := range f.modules[file].Rules {
			visit(f.scope(rule))
		}
	}
}

// eachCall visits every call and comparison in a rule, wherever it stands: the function first, then its arguments.
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

func ruleName(rule *ast.Rule) string {
	if ref := rule.Head.Ref(); len(ref) > 0 {
		if name, ok := ref[0].Value.(ast.Var); ok {
			return string(name)
		}
	}
	return string(rule.Head.Name)
}

func (f *follower) scope(rule *ast.Rule) *scope {
	if sc := f.scopes[rule]; sc != nil {
		return sc
	}
	sc := &scope{rule: rule, pkg: rule.Module.Package.Path.String(), imports: map[ast.Var]ast.Ref{}, vars: map[ast.Var]binding{}}
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

func isOperator(t *ast.Term, b *ast.Builtin) bool {
	ref, ok := t.Value.(ast.Ref)
	return ok && ref.Equal(b.Ref())
}

// function is the full name of the policy's own function that a call names.
func (f *follower) function(sc *scope, operator *ast.Term) (string, bool) {
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

// byPath are the rules of a full name, data.catalogd.lib.access.granted, and its last part.
func (f *follower) byPath(path string) ([]*ast.Rule, string) {
	i := strings.LastIndex(path, ".")
	return f.rules[path[:i]][path[i+1:]], path[i+1:]
}

// referred are the rules of the policy that a reference begins with; rest says that it goes on behind them.
func (f *follower) referred(sc *scope, ref ast.Ref) (rules []*ast.Rule, rest bool) {
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
