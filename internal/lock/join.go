package lock

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
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
	Server string           `json:"server"`
	Tool   string           `json:"tool"`
	Reason string           `json:"reason"`
	Pos    problem.Position `json:"pos"`
}

// Join makes tools of what is locked of the servers that discover theirs. A name that is taken, and a key of `discover`
// that means no locked tool, are errors.
func Join(build *registry.Build, file *File) Joined {
	j := joiner{taken: map[string]origin{}}
	for _, t := range build.Tools {
		j.taken[strings.ToLower(t.Name)] = origin{t.Name, fmt.Sprintf("the declared tool %q", t.Name), t.Pos}
	}
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
	slices.SortFunc(j.Tools, func(a, b registry.Tool) int { return cmp.Compare(a.Name, b.Name) })
	return j.Joined
}

// origin is where a name of the catalog comes from.
type origin struct {
	name, what string
	pos        problem.Position
}

type joiner struct {
	Joined
	taken map[string]origin // by the name in lower case
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
	compared := contract.Compare(t.Args, contract.Spec{Schema: theirs.part("inputSchema")})
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

// portable is the schema's #Name.
var portable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,62}$`)

// tool adds one locked tool to the catalog. protocol is the revision of MCP that its server speaks.
func (j *joiner) tool(s registry.Server, locked Tool, protocol string) {
	name := LocalName(s, locked.Name)
	path := "servers." + s.Name + ".tools." + locked.Name
	degrade := func(format string, args ...any) {
		reason := fmt.Sprintf(format, args...)
		j.Degraded = append(j.Degraded, Degraded{s.Name, locked.Name, reason, locked.Pos})
		j.Problems.Warnf(problem.BadDefinition, locked.Pos, path, "the tool is not offered: %s", reason)
	}
	if !portable.MatchString(name) {
		degrade("its name in the catalog would be %q, which not every client takes (a letter or _, then up to 62 letters, digits, _ or -); give it one with discover: tools: %q: rename", name, locked.Name)
		return
	}
	here := origin{name, fmt.Sprintf("%q of server %q", locked.Name, s.Name), locked.Pos}
	if first, taken := j.taken[strings.ToLower(name)]; taken {
		code, how := problem.DuplicateName, fmt.Sprintf("both would be %q", name)
		if first.name != name {
			code, how = problem.NameConfusable, fmt.Sprintf("%q and %q differ only in case", first.name, name)
		}
		j.Problems = append(j.Problems, problem.Problem{
			Code: code, Severity: problem.Error, Position: here.pos, Path: path, Also: []problem.Position{first.pos},
			Message: fmt.Sprintf("%s and %s collide: %s; give one another name (prefix, or discover: tools: NAME: rename)", here.what, first.what, how),
		})
		return
	}
	j.taken[strings.ToLower(name)] = here
	locked.Definition = locked.opened()
	if s.HTTP != nil && protocol >= mirroredSince {
		if _, err := paramheader.Read(locked.part("inputSchema")); err != nil {
			degrade("its arguments can't be mirrored in headers, as MCP asks: %v", err)
			return
		}
	}
	over := s.Discover.Tools[locked.Name]
	args, err := readSpec(locked.part("inputSchema"), over.Strictness)
	if err != nil {
		degrade("the schema of its arguments: %v", err)
		return
	}
	t := registry.Tool{
		Name: name, Args: args, Effect: locked.Effect, Tags: over.Tags, Timeout: s.CallTimeout,
		Title:       cmp.Or(over.Title, locked.text("title"), locked.title()),
		Description: cmp.Or(over.Description, locked.text("description")),
		Binding:     registry.Binding{MCP: &registry.MCP{Server: s.Name, Tool: locked.Name}},
		Annotations: locked.annotations(over.Title), Icons: locked.part("icons"), Meta: locked.part("_meta"),
	}
	if schema := locked.part("outputSchema"); schema != nil {
		result, err := readSpec(schema, "")
		if err != nil {
			degrade("the schema of its results: %v", err)
			return
		}
		t.Result = &result
	}
	t.Source = registry.Source{Pos: locked.Pos, Digest: digestOf(t)}
	j.Tools = append(j.Tools, t)
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
