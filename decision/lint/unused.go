package lint

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/catalogd/catalogd/decision/internal/source"
	"github.com/catalogd/catalogd/problem"
)

// UnreadData warns of top-level keys of the data that no module reads, such as policy/acess/.
func (p *Policy) UnreadData() (problems problem.List) {
	read := map[string]bool{}
	see := func(ref ast.Ref) {
		if ref[0].Value.Compare(ast.DefaultRootDocument.Value) != 0 {
			return
		}
		if len(ref) == 1 {
			read[""] = true
			return
		}
		name, _ := ref[1].Value.(ast.String) // empty for what is computed, which may be any
		read[string(name)] = true
	}
	for _, module := range p.Modules {
		look := func(t *ast.Term) bool {
			switch v := t.Value.(type) {
			case ast.Ref:
				see(v)
				for _, part := range v {
					ast.WalkRefs(part, func(inner ast.Ref) bool { see(inner); return false })
				}
				return true
			case ast.Var: // `data` as a whole
				see(ast.Ref{t})
			}
			return false
		}
		for _, imported := range module.Imports {
			look(imported.Path)
		}
		for _, rule := range module.Rules {
			ast.WalkTerms(rule, look)
		}
	}
	if read[""] {
		return nil
	}
	for _, name := range source.SortedKeys(p.Data.Value) {
		if !read[name] {
			problems.Warnf(problem.PolicyData, p.Data.Nearest([]string{name}), source.Path([]string{name}),
				"no module looks at data.%s, so nothing in it counts%s", name, source.DidYouMean(name, read))
		}
	}
	return problems
}

// UnusedTrust warns of entries of data.trust.entries that are not used, where the connect policy reads them.
func (p *Policy) UnusedTrust(used []string) (problems problem.List) {
	entries := ast.MustParseRef("data.trust.entries")
	reads := false
	for _, module := range source.Closure(p.Modules, Point{Name: "connect"}.path()) {
		ast.WalkRefs(module, func(r ast.Ref) bool {
			reads = reads || r.HasPrefix(entries)
			return reads
		})
	}
	for _, entry := range p.trustEntries() {
		if reads && !slices.Contains(used, entry.value) {
			problems.Warnf(problem.UnusedTrust, entry.pos, "data.trust.entries."+entry.value,
				"nothing is reached through the trust entry %q: fix it, or take it out; `catalogd trust` shows what is asked", entry.value)
		}
	}
	return problems
}

// trustEntries are the entries of data.trust.entries, where there are any.
func (p *Policy) trustEntries() []text {
	return textsOf(p.Data, p.Data.Value, nil, []step{{name: "trust"}, {name: "entries"}}, true)
}
