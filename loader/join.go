package loader

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// joiner combines the results of the packages and checks what spans them.
type joiner struct {
	units    []pkgID // those of the catalog, sorted by directory
	results  map[pkgID]result
	partial  bool // an error keeps whole declarations from being read
	problems problem.List
	names    map[string]map[string]problem.Position // field, name: its only position
	places   map[place]problem.Position             // where each package declares each name
	refused  []declared                             // the tools that have errors of their own
}

// place is a name in the package of a directory.
type place struct{ dir, field, name string }

// build returns the whole catalog with the valid declarations only; the problems determine whether it may be
// served.
func (j *joiner) build(maxTools int) *registry.Build {
	j.names = map[string]map[string]problem.Position{}
	j.places = map[place]problem.Position{}
	duplicate := j.duplicates()
	b := &registry.Build{Tools: []registry.Tool{}, Servers: []registry.Server{}, Branches: []registry.Branch{}}
	seen := map[string]bool{}
	once := func(field, name string, pos problem.Position, dir string) bool {
		key := field + " " + name
		if duplicate[key] || seen[key] || j.inherited(field, name, pos, dir) {
			return false
		}
		seen[key] = true
		return true
	}
	for _, r := range j.results {
		for _, p := range r.problems {
			if !ofDuplicate(p, duplicate) {
				j.problems = append(j.problems, p)
			}
		}
	}
	for _, u := range j.units {
		r := j.results[u]
		for _, t := range r.tools {
			if once(toolsField, t.Name, t.Pos, u.dir) {
				b.Tools = append(b.Tools, t)
			}
		}
		for _, s := range r.servers {
			if once(serversField, s.Name, s.Pos, u.dir) {
				b.Servers = append(b.Servers, s)
			}
		}
		for _, br := range r.branches {
			if once(branchesField, br.Name, br.Pos, u.dir) {
				b.Branches = append(b.Branches, br)
			}
		}
	}
	slices.SortFunc(b.Tools, func(a, b registry.Tool) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(b.Servers, func(a, b registry.Server) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(b.Branches, func(a, b registry.Branch) int { return cmp.Compare(a.Name, b.Name) })
	if n := len(j.names[toolsField]); n > maxTools {
		j.problems.Errorf(problem.TooManyTools, problem.Position{File: "."}, toolsField,
			"the catalog has %d tools, more than the %d that are allowed; take some out, or raise the limit", n, maxTools)
	}
	for _, u := range j.units {
		for _, d := range j.results[u].declared {
			if d.field == toolsField && !seen[toolsField+" "+d.name] {
				j.refused = append(j.refused, d)
			}
		}
	}
	j.confusable()
	j.servers(b)
	j.branches(b)
	return b
}

// inherited reports whether a computed name of the package in dir comes from a package above it.
func (j *joiner) inherited(field, name string, pos problem.Position, dir string) bool {
	return slices.ContainsFunc(above(dir)[1:], func(up string) bool {
		p, ok := j.places[place{up, field, name}]
		return ok && p == pos
	})
}

// duplicates finds names that are declared in two places. One file that several packages reach counts as one
// place, and so do two blocks of one file.
func (j *joiner) duplicates() map[string]bool {
	places := map[string][]problem.Position{}
	fields := map[string][2]string{}
	for _, u := range j.units {
		for _, d := range j.results[u].declared {
			key := d.field + " " + d.name
			j.places[place{u.dir, d.field, d.name}] = d.pos
			fields[key] = [2]string{d.field, d.name}
			if !slices.ContainsFunc(places[key], func(p problem.Position) bool { return p.File == d.pos.File }) {
				places[key] = append(places[key], d.pos)
			}
		}
	}
	duplicate := map[string]bool{}
	for key, at := range places {
		field, name := fields[key][0], fields[key][1]
		slices.SortFunc(at, func(a, b problem.Position) int {
			return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
		})
		if j.names[field] == nil {
			j.names[field] = map[string]problem.Position{}
		}
		j.names[field][name] = at[0]
		if len(at) > 1 {
			duplicate[key] = true
			j.problems = append(j.problems, problem.Problem{
				Code: problem.DuplicateName, Severity: problem.Error, Position: at[0], Path: join(field, name), Also: at[1:],
				Message: "the name is declared in more than one file; keep one declaration, or give the others their own names",
			})
		}
	}
	return duplicate
}

// ofDuplicate reports whether a conflict is caused by a duplicate name, which is already reported.
func ofDuplicate(p problem.Problem, duplicate map[string]bool) bool {
	if p.Code != problem.CUEConflict {
		return false
	}
	field, rest, _ := strings.Cut(p.Path, ".")
	name, _, _ := strings.Cut(rest, ".")
	return duplicate[field+" "+name]
}

// confusable finds names that a person, a model or a client would confuse with one another.
func (j *joiner) confusable() {
	for _, field := range []string{toolsField, serversField, branchesField} {
		names := sorted(j.names[field])
		folded := map[string]string{}
		for _, name := range names {
			if first, ok := folded[strings.ToLower(name)]; ok {
				j.confused(problem.Error, field, first, name, "differ only in case")
			} else {
				folded[strings.ToLower(name)] = name
			}
		}
		dashed := map[string]string{}
		for _, name := range names {
			key := strings.ReplaceAll(strings.ToLower(name), "-", "_")
			first, ok := dashed[key]
			if !ok {
				dashed[key] = name
			} else if !strings.EqualFold(first, name) {
				j.confused(problem.Warning, field, first, name, "differ only in - and _, which some clients write alike")
			}
		}
	}
}

func (j *joiner) confused(s problem.Severity, field, first, second, how string) {
	j.problems = append(j.problems, problem.Problem{
		Code: problem.NameConfusable, Severity: s, Position: j.names[field][second], Path: join(field, second),
		Message: "the names " + first + " and " + second + " " + how + "; rename one", Also: []problem.Position{j.names[field][first]},
	})
}

// servers checks the servers that tools name, and sets the remote names that are not given.
func (j *joiner) servers(b *registry.Build) {
	prefixes := map[string]string{}
	for _, s := range b.Servers {
		prefixes[s.Name] = s.Prefix
	}
	for i := range b.Tools {
		t := &b.Tools[i]
		if t.Binding.MCP == nil {
			continue
		}
		m := *t.Binding.MCP
		if _, ok := j.names[serversField][m.Server]; !ok {
			j.unknown(problem.UnknownServer, problem.Error, t.At("binding.mcp.server"), join(toolsField, t.Name)+".binding.mcp.server",
				"server", m.Server, sorted(j.names[serversField]))
		}
		if m.Tool == "" {
			m.Tool = strings.TrimPrefix(t.Name, prefixes[m.Server])
			t.Binding.MCP = &m
			content := *t
			content.Source = registry.Source{}
			t.Digest = digestOf(content)
		}
	}
}

// branches checks what the selectors of branches name. For a catalog of which parts could not be read it
// doesn't report patterns and tags that match nothing: the missing part may declare what they match. Where a
// server discovers its tools, their names are not known here, and Selections checks tools and tags.
func (j *joiner) branches(b *registry.Build) {
	servers := sorted(j.names[serversField])
	for _, br := range b.Branches {
		for field, s := range selectors(br) {
			for i, name := range s.Servers {
				if at := field + ".servers." + strconv.Itoa(i); !slices.Contains(servers, name) {
					j.unknown(problem.UnknownServer, problem.Error, br.At(at), join(branchesField, br.Name)+"."+at, "server", name, servers)
				}
			}
		}
	}
	if !slices.ContainsFunc(b.Servers, func(s registry.Server) bool { return s.Discover != nil }) {
		j.selections(b, sorted(j.names[toolsField]))
	}
}

// Selections checks which tools and tags the branches of a build name, after the discovered tools have been
// added to it. It does not report names in leftOut, the discovered tools that can't be offered.
func Selections(b *registry.Build, leftOut []string) problem.List {
	var j joiner
	names := slices.Clone(leftOut)
	for _, t := range b.Tools {
		names = append(names, t.Name)
	}
	slices.Sort(names)
	j.selections(b, names)
	return j.problems
}

func selectors(br registry.Branch) map[string]*registry.Selector {
	out := map[string]*registry.Selector{"select": br.Select, "hide": br.Hide}
	maps.DeleteFunc(out, func(_ string, s *registry.Selector) bool { return s == nil })
	return out
}

func (j *joiner) selections(b *registry.Build, tools []string) {
	for _, br := range b.Branches {
		for _, name := range slices.Sorted(maps.Keys(br.Strictness)) {
			if at := "strictness." + name; !slices.Contains(tools, name) {
				j.unknown(problem.UnknownTool, problem.Error, br.At(at), join(branchesField, br.Name)+"."+at, "tool", name, tools)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(br.Narrow)) {
			if at := "narrow." + name; !slices.Contains(tools, name) {
				j.unknown(problem.UnknownTool, problem.Error, br.At(at), join(branchesField, br.Name)+"."+at, "tool", name, tools)
			}
		}
		for field, s := range selectors(br) {
			for i, pattern := range s.Names {
				at := field + ".names." + strconv.Itoa(i)
				switch {
				case slices.ContainsFunc(tools, func(name string) bool { return registry.MatchName(pattern, name) }):
				case strings.Contains(pattern, "*"):
					if j.partial {
						continue
					}
					j.problems.Warnf(problem.EmptySelection, br.At(at), join(branchesField, br.Name)+"."+at, "no tool's name matches %q", pattern)
				default:
					j.unknown(problem.UnknownTool, problem.Error, br.At(at), join(branchesField, br.Name)+"."+at, "tool", pattern, tools)
				}
			}
			for i, tag := range s.Tags {
				if at := field + ".tags." + strconv.Itoa(i); !j.partial && !j.mayHave(tag) && !slices.ContainsFunc(b.Tools, func(t registry.Tool) bool { return slices.Contains(t.Tags, tag) }) {
					j.problems.Warnf(problem.EmptySelection, br.At(at), join(branchesField, br.Name)+"."+at, "no tool has the tag %q", tag)
				}
			}
		}
	}
}

// mayHave reports whether a tool that is refused because of its errors may have a tag.
func (j *joiner) mayHave(tag string) bool {
	return slices.ContainsFunc(j.refused, func(d declared) bool { return d.anyTag || slices.Contains(d.tags, tag) })
}

func (j *joiner) unknown(code problem.Code, s problem.Severity, pos problem.Position, path, what, name string, known []string) {
	text := "there is no " + what + " " + name
	if n := nearest(name, known); n != "" {
		text += "; did you mean " + n + "?"
	} else {
		text += "; declare it, or fix the name"
	}
	j.problems = append(j.problems, problem.Problem{Code: code, Severity: s, Position: pos, Path: path, Message: text})
}

func sorted(names map[string]problem.Position) []string { return slices.Sorted(maps.Keys(names)) }
