package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/catalogd/catalogd/decision/internal/shape"
	"github.com/catalogd/catalogd/decision/internal/source"
	"github.com/catalogd/catalogd/problem"
)

// maxUnknown is how many unknown names of one comparison are reported: a list may belong to another catalog
// altogether.
const maxUnknown = 20

// kind is what a name belongs to: tool, server, branch, tag, label, trust, principal, group, subject (a tool
// or server); label:KEY is the value of a label, label:* that of any label, oneof:A,B one of a closed list of
// texts.
type kind string

// nouns are the messages about an unknown name, by kind.
var nouns = map[kind]string{
	"tool": "no tool is called %q", "server": "no server is called %q", "branch": "no branch is called %q", "tag": "no tool has the tag %q",
	"label": "no branch has a label called %q", "trust": "no trust entry is called %q", "subject": "no tool or server is called %q",
	"principal": "no principal is called %q", "group": "no principal is in a group called %q",
}

func (k kind) unknown(name string) string {
	switch of, rest, _ := strings.Cut(string(k), ":"); {
	case of == "oneof":
		return fmt.Sprintf("it is never %q, only one of %s", name, strings.ReplaceAll(strings.Trim(rest, ","), ",", ", "))
	case rest == "*":
		return fmt.Sprintf("no branch has a label with the value %q", name)
	case rest != "":
		return fmt.Sprintf("no branch has the label %s with the value %q", rest, name)
	}
	return fmt.Sprintf(nouns[k], name)
}

// ofConversation reports whether a name may be that of a label which a conversation branch adds: nobody knows
// these before.
func (k kind) ofConversation(name string) bool {
	return k == "label" && strings.HasPrefix(name, "session/")
}

// noun is what a name of the kind is called in messages.
func (k kind) noun() string {
	switch of, rest, _ := strings.Cut(string(k), ":"); {
	case of == "oneof":
		return "value"
	case rest != "":
		return "value of a label"
	case k == "tag":
		return "tag"
	case k == "subject":
		return "name of a tool or server"
	case k == "trust":
		return "name of a trust entry"
	}
	return "name of a " + string(k)
}

// noMatch is the message that no name matches a pattern; does is the verb.
func noMatch(does string) func(kind, string) string {
	return func(k kind, pattern string) string { return fmt.Sprintf("no %s %s %q", k.noun(), does, pattern) }
}

// nameChecker looks at every comparison, membership test and lookup in which one side is a name of the input
// and the other a constant of a module or of the data. An unknown name is mostly misspelt, and its rule is
// then never true, or always.
type nameChecker struct {
	*dataflow
	known Names
	// askedBy are the decision points that reach a module.
	askedBy  map[*ast.Module][]Point
	problems problem.List
}

// Names are the names of a catalog by kind. Kinds without an entry are not checked.
type Names map[kind]map[string]bool

// Add adds names of a kind; without names it only says that the kind is known.
func (n Names) Add(of string, names ...string) {
	if n[kind(of)] == nil {
		n[kind(of)] = map[string]bool{}
	}
	for _, name := range names {
		n[kind(of)][name] = true
	}
}

// CheckNames warns of names that the policy compares with and the catalog doesn't have. It adds the trust
// entries of the data to known.
func (p *Policy) CheckNames(known Names) problem.List {
	for _, entry := range p.trustEntries() {
		known.Add("trust", entry.value)
	}
	n := nameChecker{dataflow: newDataflow(p.Modules, p.Data).withParameters(), known: known, askedBy: map[*ast.Module][]Point{}}
	for _, spec := range p.Points {
		if spec.Input == nil {
			continue
		}
		for _, module := range source.Closure(p.Modules, spec.path()) {
			n.askedBy[module] = append(n.askedBy[module], spec)
		}
	}
	n.each(func(sc *scope) {
		if len(n.askedBy[sc.rule.Module]) == 0 {
			return
		}
		eachCall(sc.rule, func(terms []*ast.Term) { n.call(sc, terms) })
		ast.WalkTerms(sc.rule, func(t *ast.Term) bool {
			if ref, ok := t.Value.(ast.Ref); ok {
				for i := 1; i < len(ref); i++ {
					n.lookup(sc, ast.NewTerm(ref[:i]), ref[i])
				}
			}
			return false
		})
	})
	return n.problems.Sorted()
}

// call checks one comparison or call.
func (n *nameChecker) call(sc *scope, terms []*ast.Term) {
	at := source.Position(terms[0].Location)
	of := func(i int) []origin { return n.origins(sc, terms[i]) }
	switch {
	case len(terms) == 3 && (isEquality(terms[0]) || isOperator(terms[0], ast.NotEqual)):
		n.equal(sc, at, terms[1], terms[2])
	case len(terms) == 3 && isOperator(terms[0], ast.Member):
		n.member(sc, at, terms[1], terms[2])
	case len(terms) >= 3 && isOperator(terms[0], ast.ObjectGet):
		n.lookup(sc, terms[1], terms[2])
	case len(terms) == 3 && isOperator(terms[0], ast.ObjectSubset):
		n.subset(sc, at, of(1), of(2))
	case len(terms) == 3 && isOperator(terms[0], ast.StartsWith):
		n.patterns(sc, at, of(1), of(2), strings.HasPrefix, noMatch("begins with"))
	case len(terms) == 3 && isOperator(terms[0], ast.EndsWith):
		n.patterns(sc, at, of(1), of(2), strings.HasSuffix, noMatch("ends with"))
	case len(terms) == 4 && isOperator(terms[0], ast.GlobMatch):
		n.patterns(sc, at, of(3), of(1), matches, noMatchOrUnknown)
	case len(terms) == 3:
		if path, ok := n.function(sc, terms[0]); ok && path == "data.catalogd.lib.pattern.matches" {
			n.patterns(sc, at, of(2), of(1), matches, noMatchOrUnknown)
		}
	}
}

// equal compares two terms, array literals element by element.
func (n *nameChecker) equal(sc *scope, at problem.Position, a, b *ast.Term) {
	as, isArray := a.Value.(*ast.Array)
	bs, alsoArray := b.Value.(*ast.Array)
	if isArray && alsoArray && as.Len() == bs.Len() {
		for i := range as.Len() {
			n.equal(sc, at, as.Elem(i), bs.Elem(i))
		}
		return
	}
	n.compare(sc, at, n.origins(sc, a), n.origins(sc, b))
}

// member compares a term with the elements of a collection.
func (n *nameChecker) member(sc *scope, at problem.Position, t, collection *ast.Term) {
	if _, isArray := t.Value.(*ast.Array); isArray {
		for _, elem := range inside(collection, step{any: true}) {
			n.equal(sc, at, t, elem)
		}
		return
	}
	n.compare(sc, at, n.origins(sc, t), n.elements(n.origins(sc, collection)))
}

func (n *nameChecker) elements(of []origin) []origin {
	n.budget = maxSteps
	return n.resolveRules(n.descend(of, step{any: true}, 0), 0)
}

// lookup compares a key with the keys of a collection.
func (n *nameChecker) lookup(sc *scope, collection, key *ast.Term) {
	in := n.origins(sc, collection)
	keys := n.keysOf(in)
	for _, s := range in {
		if s.rule != nil && s.rule.Head.Value == nil || s.literal != nil && isSet(s.literal) {
			keys = append(keys, n.elements([]origin{s})...)
		}
	}
	n.compare(sc, source.Position(key.Location), n.origins(sc, key), keys)
}

func isSet(t *ast.Term) bool {
	_, ok := t.Value.(ast.Set)
	return ok
}

// subset compares the keys and values of two objects of object.subset.
func (n *nameChecker) subset(sc *scope, at problem.Position, all, some []origin) {
	wanted := n.keysOf(some)
	n.compare(sc, at, n.keysOf(all), wanted)
	for _, s := range wanted {
		for _, key := range n.texts(s) {
			to := step{name: key.value}
			n.budget = maxSteps
			n.compare(sc, at, n.descend(all, to, 0), n.descend(some, to, 0))
		}
	}
}

// compare reports every text on one side that is no name of the other side's kind.
func (n *nameChecker) compare(sc *scope, at problem.Position, a, b []origin) {
	is := func(known map[string]bool, written string) bool { return known[written] }
	n.report(sc, at, a, b, is, kind.unknown)
	n.report(sc, at, b, a, is, kind.unknown)
}

// patterns reports patterns that no name matches.
func (n *nameChecker) patterns(
	sc *scope, at problem.Position, names, patterns []origin,
	fits func(name, pattern string) bool, message func(k kind, pattern string) string,
) {
	n.report(sc, at, names, patterns, func(known map[string]bool, pattern string) bool {
		for name := range known {
			if fits(name, pattern) {
				return true
			}
		}
		return false
	}, message)
}

// noMatchOrUnknown is the message about a pattern, which may be a name without any *.
func noMatchOrUnknown(k kind, pattern string) string {
	if strings.Contains(pattern, "*") {
		return noMatch("fits")(k, pattern)
	}
	return k.unknown(pattern)
}

// report warns of the texts that match no name of any kind that the other side may be. It is silent where one
// origin of names is not known to be a name, or both sides come through parameters: they may be of different
// calls.
func (n *nameChecker) report(
	sc *scope, at problem.Position, names, written []origin,
	fits func(known map[string]bool, written string) bool, message func(k kind, written string) string,
) {
	kinds := n.kinds(sc, names)
	if len(kinds) == 0 {
		return
	}
	through := slices.ContainsFunc(names, func(s origin) bool { return s.viaParam })
	reported := 0
	for _, s := range written {
		if through && s.viaParam {
			continue
		}
		for _, t := range n.texts(s) {
			if t.value == "*" || slices.ContainsFunc(kinds, func(k kind) bool { return fits(n.namesOf(k), t.value) || k.ofConversation(t.value) }) {
				continue
			}
			if reported++; reported > maxUnknown {
				return
			}
			p := problem.Problem{Code: problem.UnknownName, Severity: problem.Warning, Position: t.pos}
			near := source.DidYouMean(t.value, n.namesOf(kinds[0]))
			p.Message = message(kinds[0], t.value) + near
			if module := n.modules[t.pos.File]; module != nil {
				p.Path = module.Package.Path.String()
			} else if near == "" {
				p.Message += "; fix it, or remove it here"
			}
			if t.pos.File != at.File { // in the data, or in a constant of another module
				p.Also = []problem.Position{at}
			}
			n.problems = append(n.problems, p)
		}
	}
}

// kinds are the kinds of the names at the origins, for every point that reaches the rule; none where one is
// no name.
func (n *nameChecker) kinds(sc *scope, sources []origin) (kinds []kind) {
	for _, s := range sources {
		if s.root != ast.InputRootDocument.Value {
			return nil
		}
		for _, spec := range n.askedBy[sc.rule.Module] {
			k := named(spec.Input, s)
			if k == "" || n.namesOf(k) == nil {
				return nil
			}
			if !slices.Contains(kinds, k) {
				kinds = append(kinds, k)
			}
		}
	}
	return kinds
}

// namesOf are the names of a kind; nil where they are not known yet, and for the values of a label that no
// branch has, which is reported where its key is written.
func (n *nameChecker) namesOf(k kind) map[string]bool {
	values, ok := strings.CutPrefix(string(k), "oneof:")
	if ok && n.known[k] == nil {
		n.known[k] = map[string]bool{}
		for value := range strings.SplitSeq(values, ",") {
			n.known[k][value] = true
		}
	}
	return n.known[k]
}

// named is the kind of the name at a path of the input; empty for what is no name.
func named(s *shape.Shape, at origin) kind {
	var last shape.Field
	for _, to := range at.path {
		for s.Kind == shape.Pointer {
			s = s.Elem
		}
		switch s.Kind {
		case shape.Object:
			i := slices.IndexFunc(s.Fields, func(f shape.Field) bool { return !to.any && f.Name == to.name })
			if i < 0 {
				return ""
			}
			last = s.Fields[i]
			s = last.Shape
		case shape.List:
			s = s.Elem
		case shape.Map:
			if last.Names != "" {
				last.Names += ":" + to.key()
			}
			s = s.Elem
		default:
			return ""
		}
	}
	switch {
	case at.keys && s.Kind == shape.Map, !at.keys && s.Kind == shape.String && last.Values == nil:
		return kind(last.Names)
	case !at.keys && s.Kind == shape.String:
		return kind("oneof:" + strings.Join(last.Values, ","))
	}
	return ""
}

// key is the step's name, * for any.
func (to step) key() string {
	if to.any {
		return "*"
	}
	return to.name
}

// matches reports whether a name matches a pattern in which * stands for any characters. Every name matches a
// pattern with other glob syntax.
func matches(name, pattern string) bool {
	if strings.ContainsAny(pattern, `?[]{}\`) {
		return true
	}
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return name == pattern
	}
	rest, ok := strings.CutPrefix(name, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(rest, part)
		if i < 0 {
			return false
		}
		rest = rest[i+len(part):]
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}
