package lock

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"errors"

	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Load reads the lock of a catalog. Without the file nothing is locked.
func Load(fsys fs.FS) (*File, problem.List) {
	data, err := fs.ReadFile(fsys, Name)
	if errors.Is(err, fs.ErrNotExist) {
		return &File{}, nil
	}
	if err != nil {
		var l problem.List
		l.Errorf(problem.BadLock, problem.Position{File: Name}, "", "the lock can't be read: %v", err)
		return &File{}, l
	}
	return Read(data)
}

// Read reads a lock. It takes what Marshal writes and nothing else: a key that is missing, unknown or there twice, a
// digest that is not the definition's, an effect that is none. With an error nothing of the file counts.
func Read(data []byte) (*File, problem.List) {
	r := reader{data: data}
	root, err := parse(data)
	if err != nil {
		at := int64(0)
		var syntax *syntaxError
		if errors.As(err, &syntax) {
			at = syntax.at
		}
		r.fault(at, "", "it is no JSON as `catalogd lock` writes it: %v", err)
		return &File{}, r.problems
	}
	f := r.file(root)
	if r.problems.HasErrors() {
		return &File{}, r.problems.Sorted()
	}
	return f, nil
}

type reader struct {
	data     []byte
	problems problem.List
}

func (r *reader) pos(at int64) problem.Position {
	before := r.data[:min(at, int64(len(r.data)))]
	return problem.Position{File: Name, Line: 1 + bytes.Count(before, []byte("\n")), Col: len(before) - bytes.LastIndexByte(before, '\n')}
}

func (r *reader) fault(at int64, path, format string, args ...any) {
	r.problems.Errorf(problem.BadLock, r.pos(at), path, format+"; take the file back from git, or remove it and run `catalogd lock`", args...)
}

// fields are the members of an object that has exactly the wanted keys.
func (r *reader) fields(n node, path string, wanted ...string) map[string]node {
	o, ok := n.value.(object)
	if !ok {
		r.fault(n.at, path, "an object with %v must stand here", wanted)
		return nil
	}
	out := map[string]node{}
	for _, m := range o {
		if !slices.Contains(wanted, m.name) {
			r.fault(m.at, path, "%q has no meaning here", m.name)
		}
		out[m.name] = m.value
	}
	for _, name := range wanted {
		if _, ok := out[name]; !ok {
			r.fault(n.at, path, "%q is missing", name)
		}
	}
	return out
}

func (r *reader) text(n node, path string) string {
	s, ok := n.value.(string)
	if !ok && n.end > 0 {
		r.fault(n.at, path, "a string must stand here")
	}
	return s
}

func (r *reader) file(root node) *File {
	f := &File{}
	fields := r.fields(root, "", "format", "servers")
	if n := fields["format"]; n.end > 0 && fmt.Sprint(n.value) != fmt.Sprint(format) {
		r.fault(n.at, "format", "the format is %v, this version reads %d", n.value, format)
	}
	servers, ok := fields["servers"].value.(object)
	if n := fields["servers"]; !ok && n.end > 0 {
		r.fault(n.at, "servers", "an object must stand here")
	}
	for _, m := range servers {
		f.Servers = append(f.Servers, r.server(m))
	}
	slices.SortFunc(f.Servers, func(a, b Server) int { return cmp.Compare(a.Name, b.Name) })
	return f
}

func (r *reader) server(m member) Server {
	path := "servers." + m.name
	s := Server{Name: m.name, Pos: r.pos(m.at)}
	fields := r.fields(m.value, path, "identity", "tools")
	if n, ok := fields["identity"]; ok {
		who := r.fields(n, path+".identity", "name", "version", "protocol")
		s.Identity = Identity{
			r.text(who["name"], path+".identity.name"), r.text(who["version"], path+".identity.version"), r.text(who["protocol"], path+".identity.protocol"),
		}
	}
	tools, ok := fields["tools"].value.(object)
	if n := fields["tools"]; !ok && n.end > 0 {
		r.fault(n.at, path+".tools", "an object must stand here")
	}
	for _, t := range tools {
		s.Tools = append(s.Tools, r.tool(t, path+".tools."+t.name))
	}
	slices.SortFunc(s.Tools, func(a, b Tool) int { return cmp.Compare(a.Name, b.Name) })
	return s
}

func (r *reader) tool(m member, path string) Tool {
	t := Tool{Pos: r.pos(m.at)}
	fields := r.fields(m.value, path, "effect", "locked", "from", "digest", "definition")
	t.Effect = registry.Effect(r.text(fields["effect"], path+".effect"))
	if n := fields["effect"]; n.end > 0 && t.Effect != registry.Read && t.Effect != registry.Write {
		r.fault(n.at, path+".effect", "the effect is %q, it must be read or write", t.Effect)
	}
	t.Locked, t.From = r.text(fields["locked"], path+".locked"), r.text(fields["from"], path+".from")
	if _, err := time.Parse(time.RFC3339, t.Locked); err != nil && fields["locked"].end > 0 {
		r.fault(fields["locked"].at, path+".locked", "%q is no time such as 2026-07-28T12:00:00Z", t.Locked)
	}
	n, ok := fields["definition"]
	if !ok {
		return t
	}
	d, err := ReadDefinition(r.data[n.at:n.end])
	switch {
	case err != nil:
		r.fault(n.at, path+".definition", "the definition is none: %v", err)
	case d.Name != m.name:
		r.fault(n.at, path+".definition", "it is the definition of %q", d.Name)
	case fields["digest"].end > 0 && d.Digest != r.text(fields["digest"], path+".digest"):
		r.fault(fields["digest"].at, path+".digest", "the digest is not the definition's, so one of the two was changed by hand")
	}
	t.Definition = d
	return t
}
