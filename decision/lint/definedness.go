package lint

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/catalogd/catalogd/decision/internal/shape"
	"github.com/catalogd/catalogd/decision/internal/source"
)

// definedness says which terms have a value for every input: fields that every input has, keys of the data,
// and rules and functions without a condition. What it can't follow may be undefined.
type definedness struct {
	*dataflow
	// inputs are the shapes of the inputs of the points that reach a module.
	inputs map[*ast.Module][]*shape.Shape
}

func (p *Policy) newDefinedness() *definedness {
	d := &definedness{dataflow: newDataflow(p.Modules, p.Data).withParameters(), inputs: map[*ast.Module][]*shape.Shape{}}
	for _, spec := range p.Points {
		if spec.Input != nil {
			for _, module := range source.Closure(p.Modules, spec.path()) {
				d.inputs[module] = append(d.inputs[module], spec.Input)
			}
		}
	}
	return d
}

// abstractValue is one value that a term may have; exactly one of its fields is set, none where nothing is
// known of it.
type abstractValue struct {
	shape   *shape.Shape
	data    any
	literal *ast.Term
	scope   *scope // of the literal
}

// unknownValue is the value of which nothing is known.
var unknownValue = []abstractValue{{}}

// MayBeUndefined are the built-ins that are undefined for an empty collection, without an error. No other
// built-in is.
var MayBeUndefined = []string{"max", "min"}

// values are what a term may be; always says that it is defined wherever the rest of its rule is. given holds
// the references that the rule needs to be defined anyway, as they are written.
func (d *definedness) values(sc *scope, t *ast.Term, given map[string]bool, depth int) (found []abstractValue, always bool) {
	if d.budget--; depth > maxDepth || d.budget < 0 {
		return unknownValue, false
	}
	switch v := t.Value.(type) {
	case ast.Var:
		return d.variableValue(sc, v, given, depth)
	case ast.Ref:
		return d.refValue(sc, v, given, depth)
	case ast.Call:
		return d.callValue(sc, v, given, depth)
	case *ast.Array, ast.Object, ast.Set:
		return []abstractValue{{literal: t, scope: sc}}, d.all(sc, t, given, depth)
	}
	return unknownValue, true // a scalar, a comprehension or a template string is always defined
}

// all reports whether all parts of a collection literal are defined.
func (d *definedness) all(sc *scope, t *ast.Term, given map[string]bool, depth int) bool {
	return !slices.ContainsFunc(literalParts(t), func(part *ast.Term) bool {
		_, always := d.values(sc, part, given, depth+1)
		return !always
	})
}

// literalParts are the elements, keys and values of a collection literal; none of any other term.
func literalParts(t *ast.Term) (parts []*ast.Term) {
	add := func(part *ast.Term) { parts = append(parts, part) }
	switch v := t.Value.(type) {
	case *ast.Array:
		v.Foreach(add)
	case ast.Set:
		v.Foreach(add)
	case ast.Object:
		v.Foreach(func(key, value *ast.Term) {
			add(key)
			add(value)
		})
	}
	return parts
}

func (d *definedness) variableValue(sc *scope, name ast.Var, given map[string]bool, depth int) ([]abstractValue, bool) {
	switch name {
	case ast.InputRootDocument.Value:
		var found []abstractValue
		for _, s := range d.inputs[sc.rule.Module] {
			found = append(found, abstractValue{shape: s})
		}
		return found, true
	case ast.DefaultRootDocument.Value:
		return []abstractValue{{data: d.data.Value}}, true
	}
	b, local := sc.vars[name]
	switch {
	case local && b.how == isTerm:
		found, _ := d.values(sc, b.term, given, depth+1)
		return found, true
	case local && b.how == isElement:
		found, _ := d.values(sc, b.term, given, depth+1)
		return d.elements(found, depth), true
	case local && b.how == isParam:
		return d.parameter(sc, b.nth, depth), true
	case local:
		return unknownValue, true
	}
	if imported, ok := sc.imports[name]; ok {
		return d.refValue(sc, imported, given, depth)
	}
	if rules := d.rules[sc.pkg][string(name)]; rules != nil {
		found, always := d.ruleValue(rules, depth)
		return found, always || given[string(name)]
	}
	return unknownValue, true // a variable that a pattern sets
}

// parameter is the value of a parameter in all calls.
func (d *definedness) parameter(sc *scope, nth, depth int) (found []abstractValue) {
	calls := d.calls[sc.pkg+"."+source.RuleName(sc.rule)]
	for _, c := range calls {
		if nth >= len(c.args) {
			return unknownValue
		}
		of, _ := d.values(c.from, c.args[nth], nil, depth+1)
		found = append(found, of...)
	}
	if len(calls) == 0 {
		return unknownValue
	}
	return found
}

func (d *definedness) refValue(sc *scope, ref ast.Ref, given map[string]bool, depth int) (found []abstractValue, always bool) {
	asWritten := ref
	if head, ok := ref[0].Value.(ast.Var); ok {
		if imported, ok := sc.imports[head]; ok {
			if _, local := sc.vars[head]; !local {
				ref = imported.Concat(ref[1:])
			}
		}
	}
	steps := ref[1:]
	if rules, rest := d.rulesOf(ref); rules != nil {
		found, always = d.ruleValue(rules, depth)
		steps = rest
	} else {
		found, always = d.values(sc, ref[0], given, depth+1)
	}
	isGiven := func(behind int) bool {
		return behind < len(asWritten)-1 && given[asWritten[:len(asWritten)-behind].String()]
	}
	always = always || isGiven(len(steps))
	for i, t := range steps {
		_, keyed := d.values(sc, t, given, depth+1)
		var there bool
		found, there = d.below(found, t, depth)
		always = always && keyed && there || isGiven(len(steps)-1-i)
	}
	return found, always
}

// rulesOf are the rules that a reference to data begins with, and the rest of the reference.
func (d *definedness) rulesOf(ref ast.Ref) ([]*ast.Rule, ast.Ref) {
	if !ref[0].Equal(ast.DefaultRootDocument) {
		return nil, nil
	}
	for i := 1; i < len(ref); i++ {
		name, ok := ref[i].Value.(ast.String)
		if !ok {
			break
		}
		if rules := d.rules[ref[:i].String()][string(name)]; rules != nil {
			return rules, ref[i+1:]
		}
	}
	return nil, nil
}

// ruleValue is the value of a rule that is no function; a partial rule is at least empty.
func (d *definedness) ruleValue(rules []*ast.Rule, depth int) (found []abstractValue, always bool) {
	for _, top := range rules {
		if len(top.Head.Args) > 0 {
			return unknownValue, false
		}
		if isPartial(top) {
			return unknownValue, true
		}
	}
	return d.heads(rules, depth)
}

// heads are the values of the heads of rules; always says that one of them is defined for every input.
func (d *definedness) heads(rules []*ast.Rule, depth int) (found []abstractValue, always bool) {
	for _, top := range rules {
		sc := d.scope(top)
		for rule := top; rule != nil; rule = rule.Else {
			if rule.Head.Value == nil {
				return unknownValue, false
			}
			of, has := d.values(sc, rule.Head.Value, d.required(&block{body: rule.Body}), depth+1)
			found = append(found, of...)
			always = always || rule.Default || has && unconditional(rule)
		}
	}
	return found, always
}

// unconditional reports whether a rule has no condition, neither in its body nor in its parameters.
func unconditional(rule *ast.Rule) bool {
	return hasNoBody(rule) && !slices.ContainsFunc(rule.Head.Args, func(t *ast.Term) bool {
		_, isVar := t.Value.(ast.Var)
		return !isVar
	})
}

func (d *definedness) callValue(sc *scope, call ast.Call, given map[string]bool, depth int) (found []abstractValue, always bool) {
	always = true
	for _, arg := range call[1:] {
		_, has := d.values(sc, arg, given, depth+1)
		always = always && has
	}
	path, own := d.function(sc, call[0])
	if !own {
		return unknownValue, always && (!slices.Contains(MayBeUndefined, call[0].String()) || isFilled(call[1]))
	}
	rules, _ := d.byPath(path)
	found, reached := d.heads(rules, depth)
	return found, always && reached
}

// isFilled reports whether a term is an array or set literal with an element.
func isFilled(t *ast.Term) bool {
	switch v := t.Value.(type) {
	case *ast.Array:
		return v.Len() > 0
	case ast.Set:
		return v.Len() > 0
	}
	return false
}

// required are the references, and their prefixes, that must be defined for a block to be true: those of its
// head, of its expressions that are not negated, and of the blocks around it.
func (d *definedness) required(in *block) map[string]bool {
	found := map[string]bool{}
	for ; in != nil; in = in.outer {
		for _, t := range in.heads {
			addRequired(found, t)
		}
		for _, x := range in.body {
			if x.Negated || len(x.With) > 0 {
				continue
			}
			switch terms := x.Terms.(type) {
			case *ast.Term:
				addRequired(found, terms)
			case []*ast.Term:
				for _, t := range terms[1:] {
					addRequired(found, t)
				}
			case *ast.SomeDecl:
				for _, symbol := range terms.Symbols {
					if membership, ok := symbol.Value.(ast.Call); ok {
						addRequired(found, membership[len(membership)-1])
					}
				}
			case *ast.Every:
				addRequired(found, terms.Domain)
			}
		}
	}
	return found
}

// addRequired adds the references without which a term is undefined.
func addRequired(found map[string]bool, t *ast.Term) {
	switch v := t.Value.(type) {
	case ast.Var:
		found[string(v)] = true
	case ast.Ref:
		for i := 2; i <= len(v); i++ {
			found[v[:i].String()] = true
		}
		for _, part := range v {
			addRequired(found, part)
		}
	case ast.Call:
		for _, arg := range v[1:] {
			addRequired(found, arg)
		}
	default:
		for _, part := range literalParts(t) {
			addRequired(found, part)
		}
	}
}

// below are the values at a key of each; there says that all of them have it.
func (d *definedness) below(of []abstractValue, key *ast.Term, depth int) (found []abstractValue, there bool) {
	name, written := key.Value.(ast.String)
	if !written {
		return d.elements(of, depth), false
	}
	there = len(of) > 0
	for _, p := range of {
		next, has := d.at(p, string(name), depth)
		there = there && has
		found = append(found, next...)
	}
	return found, there
}

// at are the values at the key; has says that there always is one.
func (d *definedness) at(p abstractValue, key string, depth int) (found []abstractValue, has bool) {
	switch {
	case p.shape != nil && p.shape.Kind == shape.Pointer:
		return d.at(abstractValue{shape: p.shape.Elem}, key, depth)
	case p.shape != nil && p.shape.Kind == shape.Object:
		i := slices.IndexFunc(p.shape.Fields, func(f shape.Field) bool { return f.Name == key })
		if i < 0 {
			return unknownValue, false
		}
		at := p.shape.Fields[i].Shape
		return []abstractValue{{shape: at}}, at.Kind != shape.Pointer
	case p.shape != nil && p.shape.Kind == shape.Map:
		return []abstractValue{{shape: p.shape.Elem}}, false
	case p.data != nil:
		object, _ := p.data.(map[string]any)
		value, has := object[key]
		return []abstractValue{{data: value}}, has
	case p.literal != nil:
		if object, ok := p.literal.Value.(ast.Object); ok {
			if t := object.Get(ast.StringTerm(key)); t != nil {
				found, _ := d.values(p.scope, t, nil, depth+1)
				return found, true
			}
		}
	}
	return unknownValue, false
}

// elements are the members of the collections.
func (d *definedness) elements(of []abstractValue, depth int) (found []abstractValue) {
	for _, p := range of {
		switch {
		case p.shape != nil && p.shape.Elem != nil:
			found = append(found, abstractValue{shape: p.shape.Elem})
		case p.data != nil:
			switch v := p.data.(type) {
			case map[string]any:
				for _, key := range source.SortedKeys(v) {
					found = append(found, abstractValue{data: v[key]})
				}
			case []any:
				for _, elem := range v {
					found = append(found, abstractValue{data: elem})
				}
			}
		case p.literal != nil:
			for _, t := range inside(p.literal, step{any: true}) {
				of, _ := d.values(p.scope, t, nil, depth+1)
				found = append(found, of...)
			}
		default:
			found = append(found, abstractValue{})
		}
	}
	return found
}
