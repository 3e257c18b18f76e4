package lock

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/paramheader"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Joined are the tools that servers bring to a catalog, and what is wrong with them.
type Joined struct {
	// Tools are sorted by name.
	Tools []registry.Tool
	// Degraded are locked tools that can't be offered; their siblings are.
	Degraded []Degraded
	Problems problem.List
}

// Degraded is a locked tool that can't be offered.
type Degraded struct {
	Server string `json:"server"`
	Tool   string `json:"tool"`
	// Name is what it would be called in the catalog.
	Name   string           `json:"name"`
	Reason string           `json:"reason"`
	Pos    problem.Position `json:"pos"`
}

// Join makes tools of what is locked of the servers that discover theirs. A key of `discover` that means no locked tool is an
// error. Tools that would share a name, or have names that differ only in case, are all left out, but for a declared one.
func Join(build *registry.Build, file *File) Joined {
	var j joiner
	for _, s := range build.Servers {
		if s.Discover != nil {
			j.server(s, file, build)
		}
	}
	for _, s := range file.Servers {
		if !slices.ContainsFunc(build.Servers, func(b registry.Server) bool { return b.Name == s.Name && b.Discover != nil }) {
			j.Problems.Warnf(problem.StaleLock, s.Pos, "servers."+s.Name,
				"the lock has a server %q, and no server of that name discovers its tools; run `catalogd lock`", s.Name)
		}
	}
	j.settle(build.Tools)
	slices.SortFunc(j.Tools, func(a, b registry.Tool) int { return cmp.Compare(a.Name, b.Name) })
	return j.Joined
}

type joiner struct {
	Joined
	// found are the tools that can be offered if their names are their own.
	found []registry.Tool
}

// settle takes the tools whose names are their own, and leaves out the others: each costs itself and those that it would be
// taken for, whichever comes first.
func (j *joiner) settle(declared []registry.Tool) {
	type claim struct {
		tool *registry.Tool
		what string
	}
	claims := map[string][]claim{} // by the name in lower case, the declared tool first
	for i, t := range declared {
		claims[strings.ToLower(t.Name)] = []claim{{&declared[i], fmt.Sprintf("the declared tool %q", t.Name)}}
	}
	for i, t := range j.found {
		what := fmt.Sprintf("%q of server %q", t.Binding.MCP.Tool, t.Binding.MCP.Server)
		claims[strings.ToLower(t.Name)] = append(claims[strings.ToLower(t.Name)], claim{&j.found[i], what})
	}
	for _, t := range j.found {
		var others []string
		var also []problem.Position
		code, how := problem.DuplicateName, "which is also that of"
		for _, c := range claims[strings.ToLower(t.Name)] {
			if c.tool.Binding.MCP != nil && *c.tool.Binding.MCP == *t.Binding.MCP && c.tool.Pos == t.Pos {
				continue
			}
			others, also = append(others, c.what), append(also, c.tool.Pos)
			if c.tool.Name != t.Name {
				code, how = problem.NameConfusable, "which differs only in case from that of"
			}
		}
		if others == nil {
			j.Tools = append(j.Tools, t)
			continue
		}
		j.degrade(*t.Binding.MCP, t.Name, t.Pos, problem.Problem{Code: code, Also: also}, fmt.Sprintf(
			"its name in the catalog would be %q, %s %s; give one another name (prefix, or discover: tools: %q: rename)",
			t.Name, how, strings.Join(others, " and "), t.Binding.MCP.Tool))
	}
}

// degrade leaves out one tool.
func (j *joiner) degrade(at registry.MCP, name string, pos problem.Position, p problem.Problem, reason string) {
	j.Degraded = append(j.Degraded, Degraded{at.Server, at.Tool, name, reason, pos})
	p.Severity, p.Position, p.Path = problem.Warning, pos, "servers."+at.Server+".tools."+at.Tool
	p.Message = "the tool is not offered: " + reason
	j.Problems = append(j.Problems, p)
}

func (j *joiner) server(s registry.Server, file *File, build *registry.Build) {
	path := "servers." + s.Name + ".discover"
	locked, ok := file.Server(s.Name)
	if !ok {
		j.Problems.Warnf(problem.NotLocked, s.At("discover"), path,
			"nothing of server %q is locked, so it has no tools; run `catalogd lock`, and review %s", s.Name, Name)
		return
	}
	names := locked.Names()
	for _, list := range []struct {
		field    string
		patterns []string
	}{{"only", s.Discover.Only}, {"except", s.Discover.Except}} {
		for i, pattern := range list.patterns {
			if list.field == "except" || slices.ContainsFunc(names, func(n string) bool { return registry.MatchName(pattern, n) }) {
				continue // what is excepted is not locked
			}
			at := fmt.Sprintf("discover.%s.%d", list.field, i)
			j.unknown(s.At(at), "servers."+s.Name+"."+at, s.Name, pattern, names)
		}
	}
	for _, name := range sortedKeys(s.Discover.Tools) {
		if _, ok := locked.Tool(name); !ok || !s.Discover.Chooses(name) {
			j.unknown(s.At("discover.tools."+name), path+".tools."+name, s.Name, name, names)
		}
	}
	for _, t := range build.Tools {
		if t.Binding.MCP != nil && t.Binding.MCP.Server == s.Name {
			j.declared(t, locked)
		}
	}
	for _, t := range locked.Tools {
		if s.Discover.Chooses(t.Name) {
			j.tool(s, t, locked.Identity.Protocol)
		} else if !slices.Contains(DeclaredTools(build, s.Name), t.Name) {
			j.Problems.Warnf(problem.StaleLock, t.Pos, "servers."+s.Name+".tools."+t.Name,
				"the lock has a tool that the catalog does not choose; run `catalogd lock`")
		}
	}
}

// DeclaredTools are the names at the server of the tools that declared tools call.
func DeclaredTools(build *registry.Build, server string) (names []string) {
	for _, t := range build.Tools {
		if t.Binding.MCP != nil && t.Binding.MCP.Server == server {
			names = append(names, t.Binding.MCP.Tool)
		}
	}
	return names
}

func (j *joiner) unknown(pos problem.Position, path, server, name string, known []string) {
	text := fmt.Sprintf("no tool of server %q that is locked is called %q", server, name)
	if near := nearest(name, known); len(near) > 0 {
		text += "; did you mean " + strings.Join(near, " or ") + "?"
	} else {
		text += "; mend the name, or run `catalogd lock`"
	}
	j.Problems.Errorf(problem.UnknownTool, pos, path, "%s", text)
}

// nearest are the three names that a misspelling most likely meant, the nearest first.
func nearest(name string, known []string) []string {
	type candidate struct {
		name     string
		distance int
	}
	var near []candidate
	for _, k := range known {
		d := levenshtein.ComputeDistance(strings.ToLower(name), strings.ToLower(k))
		if d <= max(2, min(3, len(name)/3)) {
			near = append(near, candidate{k, d})
		}
	}
	slices.SortStableFunc(near, func(a, b candidate) int { return cmp.Compare(a.distance, b.distance) })
	var names []string
	for _, c := range near[:min(3, len(near))] {
		names = append(names, fmt.Sprintf("%q", c.name))
	}
	return names
}

// declared checks a declared tool against the locked one that it calls: whether there is one, and whether each call that
// the declaration lets through is one that the server takes.
func (j *joiner) declared(t registry.Tool, locked Server) {
	remote := t.Binding.MCP.Tool
	path := "tools." + t.Name
	theirs, ok := locked.Tool(remote)
	if !ok {
		j.unknown(t.At("binding.mcp"), path+".binding.mcp", locked.Name, remote, locked.Names())
		return
	}
	if t.Pre != "" {
		return // what the program makes of the arguments is not known before a call
	}
	compared := contract.Compare(t.Args, upstream(theirs.part("inputSchema")))
	for _, d := range compared.Differences {
		if d.Refused == nil {
			continue
		}
		j.Problems = append(j.Problems, problem.Problem{
			Code: problem.UpstreamMismatch, Severity: problem.Warning, Position: t.At("args"), Path: path + ".args", Also: []problem.Position{theirs.Pos},
			Message: fmt.Sprintf("server %q refuses arguments that this tool takes, such as %s: %s", locked.Name, d.Refused, d),
		})
		return
	}
}

// mirroredSince is the revision of MCP from which on arguments are mirrored in HTTP headers.
const mirroredSince = "2026-07-28"

// tool adds one locked tool to the catalog. protocol is the revision of MCP that its server speaks.
func (j *joiner) tool(s registry.Server, locked Tool, protocol string) {
	name := LocalName(s, locked.Name)
	degrade := func(format string, args ...any) {
		at := registry.MCP{Server: s.Name, Tool: locked.Name}
		j.degrade(at, name, locked.Pos, problem.Problem{Code: problem.BadDefinition}, fmt.Sprintf(format, args...))
	}
	locked.Definition = locked.opened()
	over := s.Discover.Tools[locked.Name]
	input := locked.part("inputSchema")
	if input == nil {
		degrade("it has no schema of its arguments (inputSchema is missing)")
		return
	}
	if s.HTTP != nil && protocol >= mirroredSince {
		if _, err := paramheader.Read(input); err != nil {
			degrade("its arguments can't be mirrored in headers, as MCP asks: %v", err)
			return
		}
	}
	args, err := readSpec(input, over.Strictness, over.Fill)
	if err != nil {
		degrade("the schema of its arguments: %v", err)
		return
	}
	t := registry.Tool{
		Name: name, Args: args, Effect: locked.Effect, Tags: over.Tags, Timeout: cmp.Or(over.Timeout, s.CallTimeout),
		Pre: over.Pre, Post: over.Post, ResultCheck: over.ResultCheck, Result: over.Result,
		Title:       cmp.Or(over.Title, locked.text("title"), locked.title()),
		Description: cmp.Or(over.Description, locked.text("description")),
		Binding:     registry.Binding{MCP: &registry.MCP{Server: s.Name, Tool: locked.Name}},
		Annotations: locked.annotations(over.Title), Icons: locked.part("icons"), Meta: locked.part("_meta"),
	}
	// What a program makes of a result is not what the server says of its own.
	if schema := locked.part("outputSchema"); schema != nil && over.Result == nil && over.Post == "" {
		result, err := readResult(schema)
		if err != nil {
			degrade("the schema of its results: %v", err)
			return
		}
		t.Result = &result
	}
	t.Source = registry.Source{Pos: locked.Pos, Digest: digestOf(t), Fields: map[string]problem.Position{}}
	for _, field := range []string{"pre", "post", "timeout", "result", "resultCheck"} {
		if pos, ok := s.Fields["discover.tools."+locked.Name+"."+field]; ok {
			t.Fields[field] = pos
		}
	}
	j.found = append(j.found, t)
}

func digestOf(t registry.Tool) string {
	b, err := json.Marshal(t)
	if err != nil {
		panic("lock: plain data encodes: " + err.Error())
	}
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// title is the title among the annotations, where older servers have it.
func (d Definition) title() string {
	n, _ := d.open().get("annotations")
	o, _ := n.value.(object)
	title, _ := o.get("title")
	s, _ := title.value.(string)
	return s
}

// annotations are the server's, with the operator's word on whether the tool only reads, and the title that the catalog
// gives it.
func (t Tool) annotations(title string) json.RawMessage {
	n, _ := t.open().get("annotations")
	o, _ := n.value.(object)
	var b bytes.Buffer
	b.WriteByte('{')
	for _, m := range o {
		if m.name == "readOnlyHint" || m.name == "title" && title != "" {
			continue
		}
		put(&b, m.name)
		b.WriteByte(':')
		b.Write(t.Raw[m.value.at:m.value.end])
		b.WriteByte(',')
	}
	if title != "" {
		b.WriteString(`"title":`)
		put(&b, title)
		b.WriteByte(',')
	}
	fmt.Fprintf(&b, `"readOnlyHint":%t}`, t.Effect == registry.Read)
	return b.Bytes()
}
