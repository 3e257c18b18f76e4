package decision

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/catalogd/catalogd/problem"
)

// maxUnknown is how many names that nothing has are told of one comparison: a list may be of another catalog altogether.
const maxUnknown = 20

// kind is what a name is of: tool, server, branch, tag, label, trust, subject (a tool or server); label:KEY is the value of
// a label, label:* of any; oneof:A,B is one of these texts.
type kind string

// nouns say what has no such name.
var nouns = map[kind]string{
	"tool": "no tool is called %q", "server": "no server is called %q", "branch": "no branch is called %q", "tag": "no tool has the tag %q",
	"label": "no branch has a label called %q", "trust": "no trust entry is called %q", "subject": "no tool or server is called %q",
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

// noun is what such a name is called.
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

// unfit says that no name does what the pattern asks.
func unfit(does string) func(kind, string) string {
	return func(k kind, pattern string) string { return fmt.Sprintf("no %s %s %q", k.noun(), does, pattern) }
}

// A namer holds a policy to the names of a catalog: every comparison, membership and look-up in which one side is a name of
// the input and the other one is written in a module or in the data. A name that nothing has is mostly misspelt, and its
// rule then says nothing, or everything.
type namer struct {
	*follower
	known map[kind]map[string]bool
	// askedBy are the points that reach a module.
	askedBy  map[*ast.Module][]pointSpec
	problems problem.List
}

// checkNames is the part of CheckCatalog about names.
func (e *Engine) checkNames(c Catalog) problem.List {
	n := namer{follower: newFollower(e.modules, e.data).withParameters(), known: e.known(c), askedBy: map[*ast.Module][]pointSpec{}}
	for _, spec := range points {
		if e.points[spec.point] == nil {
			continue
		}
		for _, module := range closure(e.modules, spec.path()) {
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

// known are the names of each kind, with the empty one where an input may have none.
func (e *Engine) known(c Catalog) map[kind]map[string]bool {
	known := map[kind]map[string]bool{}
	add := func(k kind, names ...string) {
		if known[k] == nil {
			known[k] = map[string]bool{}
		}
		for _, name := range names {
			known[k][name] = true
		}
	}
	add("branch")
	add("label")
	add("label:*")
	add("server", append([]string{""}, c.Servers...)...)
	add("trust", append([]string{""}, c.Trusted...)...)
	for _, entry := range e.trustEntries() {
		add("trust", entry.value)
	}
	for _, b := range c.Branches {
		add("branch", b.Name)
		for label, value := range b.Labels {
			add("label", label)
			add("label:*", value)
			add(kind("label:"+label), value)
		}
	}
	if c.Incomplete {
		return known
	}
	add("tool", "") // that of a resource or a prompt
	add("tag")
	add("subject", c.Servers...)
	for _, t := range c.Tools {
		add("tool", t.Name)
		add("subject", t.Name)
		add("tag", t.Tags...)
	}
	return known
}

// trustEntries are the entries of data.trust.entries, where there are any.
func (e *Engine) trustEntries() []text {
	return e.data.texts(e.data.value, nil, []step{{name: "trust"}, {name: "entries"}}, true)
}

// call looks at one comparison or call.
func (n *namer) call(sc *scope, terms []*ast.Term) {
	at := position(terms[0].Location)
	of := func(i int) []stands { return n.of(sc, terms[i]) }
	switch {
	case len(terms) == 3 && (isOperator(terms[0], ast.Equal) || isOperator(terms[0], ast.Equality) || isOperator(terms[0], ast.NotEqual)):
		n.equal(sc, at, terms[1], terms[2])
	case len(terms) == 3 && isOperator(terms[0], ast.Member):
		n.member(sc, at, terms[1], terms[2])
	case len(terms) >= 3 && isOperator(terms[0], ast.ObjectGet):
		n.lookup(sc, terms[1], terms[2])
	case len(terms) == 3 && isOperator(terms[0], ast.ObjectSubset):
		n.subset(sc, at, of(1), of(2))
	case len(terms) == 3 && isOperator(terms[0], ast.StartsWith):
		n.patterns(sc, at, of(1), of(2), strings.HasPrefix, unfit("begins with"))
	case len(terms) == 3 && isOperator(terms[0], ast.EndsWith):
		n.patterns(sc, at, of(1), of(2), strings.HasSuffix, unfit("ends with"))
	case len(terms) == 4 && isOperator(terms[0], ast.GlobMatch):
		n.patterns(sc, at, of(3), of(1), matches, unfitOrUnknown)
	case len(terms) == 3:
		if path, ok := n.function(sc, terms[0]); ok && path == "data.catalogd.lib.pattern.matches" {
			n.patterns(sc, at, of(2), of(1), matches, unfitOrUnknown)
		}
	}
}

// equal compares two terms, lists that are written out element by element.
func (n *namer) equal(sc *scope, at problem.Position, a, b *ast.Term) {
	as, isArray := a.Value.(*ast.Array)
	bs, alsoArray := b.Value.(*ast.Array)
	if isArray && alsoArray && as.Len() == bs.Len() {
		for i := range as.Len() {
			n.equal(sc, at, as.Elem(i), bs.Elem(i))
		}
		return
	}
	n.compare(sc, at, n.of(sc, a), n.of(sc, b))
}

// member compares a term with the elements of a collection.
func (n *namer) member(sc *scope, at problem.Position, t, collection *ast.Term) {
	if _, isArray := t.Value.(*ast.Array); isArray {
		for _, elem := range inside(collection, step{any: true}) {
			n.equal(sc, at, t, elem)
		}
		return
	}
	n.compare(sc, at, n.of(sc, t), n.elements(n.of(sc, collection)))
}

func (n *namer) elements(of []stands) []stands {
	n.budget = maxSteps
	return n.followed(n.below(of, step{any: true}, 0), 0)
}

// lookup compares what something is looked up by with the keys that there are.
func (n *namer) lookup(sc *scope, collection, key *ast.Term) {
	in := n.of(sc, collection)
	keys := n.keys(in)
	for _, s := range in {
		if s.rule != nil && s.rule.Head.Value == nil || s.literal != nil && isSet(s.literal) {
			keys = append(keys, n.elements([]stands{s})...)
		}
	}
	n.compare(sc, position(key.Location), n.of(sc, key), keys)
}

func isSet(t *ast.Term) bool {
	_, ok := t.Value.(ast.Set)
	return ok
}

// subset compares the keys and values of a mapping with those of one that it must have.
func (n *namer) subset(sc *scope, at problem.Position, all, some []stands) {
	wanted := n.keys(some)
	n.compare(sc, at, n.keys(all), wanted)
	for _, s := range wanted {
		for _, key := range n.texts(s) {
			to := step{name: key.value}
			n.budget = maxSteps
			n.compare(sc, at, n.below(all, to, 0), n.below(some, to, 0))
		}
	}
}

// compare warns of every text on one side that no name on the other side is.
func (n *namer) compare(sc *scope, at problem.Position, a, b []stands) {
	is := func(known map[string]bool, written string) bool { return known[written] }
	n.judge(sc, at, a, b, is, kind.unknown)
	n.judge(sc, at, b, a, is, kind.unknown)
}

// patterns warns of patterns that no name fits.
func (n *namer) patterns(sc *scope, at problem.Position, names, patterns []stands, fits func(name, pattern string) bool, say func(kind, string) string) {
	n.judge(sc, at, names, patterns, func(known map[string]bool, pattern string) bool {
		for name := range known {
			if fits(name, pattern) {
				return true
			}
		}
		return false
	}, say)
}

// unfitOrUnknown says it of a pattern, which may be a name without any *.
func unfitOrUnknown(k kind, pattern string) string {
	if strings.Contains(pattern, "*") {
		return unfit("fits")(k, pattern)
	}
	return k.unknown(pattern)
}

// judge warns of the texts that fit no name of any kind that the other side may be. Where one of its sources is not
// known to be a name, or both sides came through parameters, it says nothing.
func (n *namer) judge(sc *scope, at problem.Position, names, written []stands, fits func(known map[string]bool, written string) bool, say func(kind, string) string) {
	kinds := n.kinds(sc, names)
	if len(kinds) == 0 {
		return
	}
	through := slices.ContainsFunc(names, func(s stands) bool { return s.param })
	told := 0
	for _, s := range written {
		if through && s.param {
			continue
		}
		for _, t := range n.texts(s) {
			if t.value == "*" || slices.ContainsFunc(kinds, func(k kind) bool { return fits(n.namesOf(k), t.value) }) {
				continue
			}
			if told++; told > maxUnknown {
				return
			}
			p := problem.Problem{Code: problem.UnknownName, Severity: problem.Warning, Position: t.pos, Message: say(kinds[0], t.value)}
			p.Message += didYouMean(t.value, n.namesOf(kinds[0]))
			if module := n.modules[t.pos.File]; module != nil {
				p.Path = module.Package.Path.String()
			}
			if t.pos.File != at.File { // in the data, or in a constant of another module
				p.Also = []problem.Position{at}
			}
			n.problems = append(n.problems, p)
		}
	}
}

// kinds are what the sources are names of, at every point that asks the rule; none where one of them is something else.
func (n *namer) kinds(sc *scope, sources []stands) (kinds []kind) {
	for _, s := range sources {
		if s.root != ast.InputRootDocument.Value {
			return nil
		}
		for _, spec := range n.askedBy[sc.rule.Module] {
			k := spec.input.named(s)
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

// namesOf are the names of a kind; nil where they are not known yet, or of the values of a label that no branch has, which
// is told where its key is written.
func (n *namer) namesOf(k kind) map[string]bool {
	values, ok := strings.CutPrefix(string(k), "oneof:")
	if ok && n.known[k] == nil {
		n.known[k] = map[string]bool{}
		for value := range strings.SplitSeq(values, ",") {
			n.known[k][value] = true
		}
	}
	return n.known[k]
}

// named is of what a place in the input is a name; empty for what is none.
func (s *shape) named(at stands) kind {
	var last field
	for _, to := range at.path {
		for s.kind == pointerShape {
			s = s.elem
		}
		switch s.kind {
		case objectShape:
			i := slices.IndexFunc(s.fields, func(f field) bool { return !to.any && f.name == to.name })
			if i < 0 {
				return ""
			}
			last = s.fields[i]
			s = last.shape
		case listShape:
			s = s.elem
		case mapShape:
			if last.names != "" {
				last.names += ":" + to.key()
			}
			s = s.elem
		default:
			return ""
		}
	}
	switch {
	case at.keys && s.kind == mapShape, !at.keys && s.kind == stringShape && last.values == nil:
		return kind(last.names)
	case !at.keys && s.kind == stringShape:
		return kind("oneof:" + strings.Join(last.values, ","))
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

// matches reports whether a name fits a pattern in which * stands for any characters. Patterns with other signs of globs are
// not judged.
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

// nearest is the name that was probably meant, empty where none is near.
func nearest(written string, known map[string]bool) string {
	best, least := "", max(2, len(written)/4)+1
	for _, name := range sortedKeys(known) {
		if d := levenshtein.ComputeDistance(strings.ToLower(written), strings.ToLower(name)); name != "" && d < least && d < len(name) {
			best, least = name, d
		}
	}
	return best
}
