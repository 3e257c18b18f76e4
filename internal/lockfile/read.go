package lockfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/catalogd/catalogd/internal/strictjson"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Load reads the lock of a catalog. A missing file is an empty lock.
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

// Read reads a lock. It accepts only what Marshal writes: a missing, unknown or duplicate key, a digest that
// does not match the definition, and an invalid effect are errors. With an error nothing of the file is used.
func Read(data []byte) (*File, problem.List) {
	r := reader{data: data}
	root, err := parse(data)
	if err != nil {
		at, reason := 0, err.Error()
		var bad *strictjson.Error
		if errors.As(err, &bad) {
			at, reason = bad.Offset, bad.Reason()
		}
		r.fault(at, "", "not JSON as `catalogd lock` writes it: %s", reason)
		return &File{}, r.problems
	}
	f := r.file(strictjson.Member{Value: root})
	if r.problems.HasErrors() {
		return &File{}, r.problems.Sorted()
	}
	return f, nil
}

// maxDepth caps the nesting of JSON, in a lock and in a server's offer.
const maxDepth = 100

// parse parses a lock, or a server's offer. Servers cut texts inside a surrogate pair, so an unpaired
// surrogate is accepted; clients get the server's own bytes.
func parse(data []byte) (any, error) {
	return strictjson.Decode(data, strictjson.Options{MaxDepth: maxDepth, AllowUnpaired: true})
}

type reader struct {
	data     []byte
	problems problem.List
}

func (r *reader) pos(at int) problem.Position {
	before := r.data[:min(at, len(r.data))]
	return problem.Position{File: Name, Line: 1 + bytes.Count(before, []byte("\n")), Col: len(before) - bytes.LastIndexByte(before, '\n')}
}

func (r *reader) fault(at int, path, format string, args ...any) {
	r.problems.Errorf(problem.BadLock, r.pos(at), path, format+"; take the file back from git, or remove it and run `catalogd lock`", args...)
}

// fields returns the members of an object that must have exactly the wanted keys.
func (r *reader) fields(n strictjson.Member, path string, wanted ...string) map[string]strictjson.Member {
	o, ok := n.Value.(*strictjson.Object)
	if !ok {
		r.fault(n.At, path, "expected an object with %v", wanted)
		return nil
	}
	out := map[string]strictjson.Member{}
	for _, m := range o.Members {
		if !slices.Contains(wanted, m.Key) {
			r.fault(m.KeyAt, path, "unknown key %q", m.Key)
		}
		out[m.Key] = m
	}
	for _, name := range wanted {
		if _, ok := out[name]; !ok {
			r.fault(n.At, path, "%q is missing", name)
		}
	}
	return out
}

func (r *reader) text(n strictjson.Member, path string) string {
	s, ok := n.Value.(string)
	if !ok && n.End > 0 {
		r.fault(n.At, path, "expected a string")
	}
	return s
}

// object returns the members of a field that must be an object.
func (r *reader) object(n strictjson.Member, path string) []strictjson.Member {
	o, ok := n.Value.(*strictjson.Object)
	if ok {
		return o.Members
	}
	if n.End > 0 {
		r.fault(n.At, path, "expected an object")
	}
	return nil
}

func (r *reader) file(root strictjson.Member) *File {
	f := &File{}
	fields := r.fields(root, "", "format", "servers")
	if n := fields["format"]; n.End > 0 && fmt.Sprint(n.Value) != fmt.Sprint(format) {
		r.fault(n.At, "format", "the format is %v, this version reads %d", n.Value, format)
	}
	for _, m := range r.object(fields["servers"], "servers") {
		f.Servers = append(f.Servers, r.server(m))
	}
	slices.SortFunc(f.Servers, func(a, b Server) int { return cmp.Compare(a.Name, b.Name) })
	return f
}

func (r *reader) server(m strictjson.Member) Server {
	path := "servers." + m.Key
	s := Server{Name: m.Key, Pos: r.pos(m.KeyAt)}
	fields := r.fields(m, path, "identity", "tools")
	if n, ok := fields["identity"]; ok {
		who := r.fields(n, path+".identity", "name", "version", "protocol")
		s.Identity = Identity{
			r.text(who["name"], path+".identity.name"),
			r.text(who["version"], path+".identity.version"),
			r.text(who["protocol"], path+".identity.protocol"),
		}
	}
	for _, t := range r.object(fields["tools"], path+".tools") {
		s.Tools = append(s.Tools, r.tool(t, path+".tools."+t.Key))
	}
	slices.SortFunc(s.Tools, func(a, b Tool) int { return cmp.Compare(a.Name, b.Name) })
	return s
}

func (r *reader) tool(m strictjson.Member, path string) Tool {
	t := Tool{Pos: r.pos(m.KeyAt)}
	fields := r.fields(m, path, "effect", "locked", "from", "digest", "definition")
	t.Effect = registry.Effect(r.text(fields["effect"], path+".effect"))
	t.EffectPos = r.pos(fields["effect"].KeyAt)
	if n := fields["effect"]; n.End > 0 && t.Effect != registry.Read && t.Effect != registry.Write {
		r.fault(n.At, path+".effect", "the effect is %q, it must be read or write", t.Effect)
	}
	t.Locked, t.From = r.text(fields["locked"], path+".locked"), r.text(fields["from"], path+".from")
	if _, err := time.Parse(time.RFC3339, t.Locked); err != nil && fields["locked"].End > 0 {
		r.fault(fields["locked"].At, path+".locked", "%q is not a time such as 2026-07-28T12:00:00Z", t.Locked)
	}
	n, ok := fields["definition"]
	if !ok {
		return t
	}
	d, err := ReadDefinition(r.data[n.At:n.End])
	switch {
	case err != nil:
		r.fault(n.At, path+".definition", "invalid definition: %v", err)
	case d.Name != m.Key:
		r.fault(n.At, path+".definition", "it is the definition of %q", d.Name)
	case fields["digest"].End > 0 && d.Digest != r.text(fields["digest"], path+".digest"):
		r.fault(fields["digest"].At, path+".digest",
			"the digest is not the definition's, so one of the two was changed by hand")
	}
	t.Definition = d
	return t
}
