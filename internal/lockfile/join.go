package lockfile

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

	"github.com/catalogd/catalogd/contract/compat"
	"github.com/catalogd/catalogd/internal/paramheader"
	"github.com/catalogd/catalogd/internal/strictjson"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Joined holds the tools that servers add to a catalog, and the problems with them.
type Joined struct {
	// Tools are sorted by name.
	Tools []registry.Tool
	// Degraded are locked tools that can't be offered; the server's other tools can.
	Degraded []Degraded
	Problems problem.List
}

// Degraded is a locked tool that can't be offered.
type Degraded struct {
	// Server is the server's name in the catalog.
	Server string `json:"server"`
	// Tool is the tool's name at the server.
	Tool string `json:"tool"`
	// Name is the name that it would have in the catalog.
	Name string `json:"name"`
	// Reason is why it can't be offered.
	Reason string `json:"reason"`
	// Pos is where it is locked.
	Pos problem.Position `json:"pos"`
}

// Join makes tools from the locked tools of the servers that discover theirs. A key of `discover` that
// matches no locked tool is an error. Tools with the same name, or with names that differ only in case, are
// all left out, except a declared one.
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
	// found are the tools that can be offered if their names are unique.
	found []registry.Tool
}

// settle keeps the tools whose names are unique, and leaves out all that collide, whichever comes first.
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
				continue // excluded tools are not locked
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

// DeclaredTools returns the names at the server of the tools that declared tools call.
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
		text += "; fix the name, or run `catalogd lock`"
	}
	j.Problems.Errorf(problem.UnknownTool, pos, path, "%s", text)
}

// nearest returns the three known names nearest to a misspelling, the nearest first.
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

// declared checks a declared tool against the locked one that it calls: whether that exists, and whether the
// server accepts each call that the declaration allows.
func (j *joiner) declared(t registry.Tool, locked Server) {
	remote := t.Binding.MCP.Tool
	path := "tools." + t.Name
	theirs, ok := locked.Tool(remote)
	if !ok {
		j.unknown(t.At("binding.mcp"), path+".binding.mcp", locked.Name, remote, locked.Names())
		return
	}
	j.effect(t, theirs, t.At("effect"), path, t.At("effectNote"), path+".effectNote")
	if t.Pre != "" {
		return // the program's output for the arguments is not known before a call
	}
	compared := compat.Compare(t.Args, upstream(theirs.part("inputSchema")))
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

// mirroredSince is the first revision of MCP in which arguments are mirrored in HTTP headers.
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
		Name: name, Args: args, Effect: locked.Effect, EffectNote: over.EffectNote, Tags: over.Tags, Timeout: cmp.Or(over.Timeout, s.CallTimeout),
		Idempotent: over.Idempotent, IdempotencyKey: over.IdempotencyKey,
		Pre: over.Pre, Post: over.Post, ResultCheck: over.ResultCheck, Result: over.Result,
		Title:       cmp.Or(over.Title, locked.text("title"), locked.title()),
		Description: cmp.Or(over.Description, locked.text("description")),
		Binding:     registry.Binding{MCP: &registry.MCP{Server: s.Name, Tool: locked.Name}},
		Annotations: locked.annotations(over), Icons: locked.part("icons"), Meta: locked.part("_meta"),
	}
	// A program's output does not follow the server's own output schema.
	if schema := locked.part("outputSchema"); schema != nil && over.Result == nil && over.Post == "" {
		result, err := readResult(schema)
		if err != nil {
			degrade("the schema of its results: %v", err)
			return
		}
		t.Result = &result
	}
	if t.Effect == registry.Write {
		at, secret := t.StoredSecret()
		if secret && !(over.Result != nil && strings.HasPrefix(at, "result")) { // the registry reports it at its position
			j.degrade(*t.Binding.MCP, name, locked.Pos, problem.Problem{Code: problem.StoredSecret}, fmt.Sprintf(
				"its server declares %s as a secret (writeOnly), and the arguments and results of a tool with effect write are stored", at))
			return
		}
	}
	at := "discover.tools." + locked.Name + ".effectNote"
	if !j.effect(t, locked, locked.EffectPos, "servers."+s.Name+".tools."+locked.Name, s.At(at), "servers."+s.Name+"."+at) {
		t.EffectNote = "" // no reason for anything
	}
	t.Source = registry.Source{Pos: locked.Pos, Digest: digestOf(t), Fields: map[string]problem.Position{}}
	for _, field := range []string{"idempotent", "idempotencyKey", "pre", "post", "timeout", "result", "resultCheck", "effectNote"} {
		if pos, ok := s.Fields["discover.tools."+locked.Name+"."+field]; ok {
			t.Fields[field] = pos
		}
	}
	j.found = append(j.found, t)
}

// effect reports a tool that only reads by what the operator says and not by what its server says, without a
// reason, and a reason that no tool needs; then it returns false. The tool is declared or discovered.
func (j *joiner) effect(t registry.Tool, theirs Tool, effect problem.Position, path string, note problem.Position, notePath string) bool {
	suspect := t.Effect == registry.Read && !theirs.ReadOnly()
	switch {
	case suspect && t.EffectNote == "":
		says := "does not say so (no readOnlyHint)"
		if theirs.open().Object("annotations").Get("readOnlyHint") == any(false) {
			says = "says that it changes something (readOnlyHint: false)"
		}
		how := "write effect: \"write\" if it changes anything, or say in effectNote why it does not"
		if t.Discovered() {
			how = fmt.Sprintf("run `catalogd lock --effect write %s` if it changes anything, or say why it does not: discover: tools: %q: effectNote: \"...\"", t.Name, theirs.Name)
		}
		j.Problems.Warnf(problem.SuspectEffect, effect, path+".effect",
			"the effect is read, but server %q %s, and clients are told that the tool only reads; %s", t.Binding.MCP.Server, says, how)
	case !suspect && t.EffectNote != "" && (t.Effect == registry.Read || t.Discovered()): // else the loader reports it
		j.Problems.Warnf(problem.UnusedEffectNote, note, notePath,
			`effectNote is unused: it is for a tool with effect read whose server does not call it read-only; take it away`)
		return false
	}
	return true
}

func digestOf(t registry.Tool) string {
	b, err := json.Marshal(t)
	if err != nil {
		panic("lockfile: plain data must encode: " + err.Error())
	}
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// title returns the title among the annotations, where older servers put it.
func (d Definition) title() string {
	return d.open().Object("annotations").Text("title")
}

// annotations returns the server's annotations without those that contradict the operator: for a tool that
// only reads, that it may destroy something or is not idempotent; for one declared idempotent, that it is
// not. Whether the tool only reads is decided by the operator alone, and so is the title where the catalog
// has one. Members whose names differ from these only in case are removed as well, because parsers disagree
// about which of them counts.
func (t Tool) annotations(over registry.Override) json.RawMessage {
	var members []strictjson.Member
	if o := t.open().Object("annotations"); o != nil {
		members = o.Members
	}
	read := t.Effect == registry.Read
	var b bytes.Buffer
	b.WriteByte('{')
	for _, m := range members {
		if contradicts(m, read, over) {
			continue
		}
		put(&b, m.Key)
		b.WriteByte(':')
		b.Write(t.Raw[m.At:m.End])
		b.WriteByte(',')
	}
	if over.Title != "" {
		b.WriteString(`"title":`)
		put(&b, over.Title)
		b.WriteByte(',')
	}
	if over.Idempotent {
		b.WriteString(`"idempotentHint":true,`)
	}
	fmt.Fprintf(&b, `"readOnlyHint":%t}`, read)
	return b.Bytes()
}

// contradicts reports whether an annotation is removed, because the operator declares the opposite or has set
// it already.
func contradicts(m strictjson.Member, read bool, over registry.Override) bool {
	is := func(name string) bool { return strings.EqualFold(m.Key, name) }
	says := func(name string, value bool) bool { return m.Key == name && m.Value == any(value) }
	switch {
	case is("readOnlyHint"):
		return true
	case is("title"):
		return over.Title != "" || m.Key != "title"
	case is("destructiveHint"):
		return read && !says("destructiveHint", false) || m.Key != "destructiveHint"
	case is("idempotentHint"):
		return over.Idempotent || read && !says("idempotentHint", true) || m.Key != "idempotentHint"
	}
	return false
}
