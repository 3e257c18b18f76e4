// Package lockfile reads and writes catalog.lock.json: the definitions of the tools that upstream servers
// offer, as reviewed by a person, kept in git beside the catalog.
//
// A File holds, for each server that discovers its tools, the server's identity, and for each of its tools
// the whole definition as received, the digest of its content, when and from which version of the server it
// was locked, and the effect that the operator gave it. Read parses it strictly, Marshal writes it, with the
// same bytes for the same content. A Definition is one tool as a server offers it, read without loss; Compare
// classifies the differences between the locked and the offered ones. Join makes ordinary tools of the locked
// ones. The package does no network I/O.
package lockfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"

	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Name is the lock's path from the catalog's root.
const Name = "catalog.lock.json"

// format is the version of the format.
const format = 1

// File is a lock. The zero File locks nothing.
type File struct {
	// Servers are sorted by name.
	Servers []Server
}

// Server holds the locked tools of one server.
type Server struct {
	Name     string
	Identity Identity
	// Tools are sorted by their names at the server.
	Tools []Tool
	// Pos is the server's position in the file.
	Pos problem.Position
}

// Identity is the identity that a server reports.
type Identity struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// Protocol is the revision of MCP that was negotiated when the lock was written.
	Protocol string `json:"protocol"`
}

// Tool is one locked tool.
type Tool struct {
	Definition
	// Effect is the effect that the operator gave the tool.
	Effect registry.Effect
	// Locked is the time of locking, RFC 3339 in UTC; From is the server's version at that time.
	Locked, From string
	// Pos is the tool's position in the file, and EffectPos that of its effect.
	Pos, EffectPos problem.Position
}

// Server returns the lock of a server; ok is false where there is none.
func (f *File) Server(name string) (Server, bool) {
	i, ok := slices.BinarySearchFunc(f.Servers, name, func(s Server, n string) int { return cmp.Compare(s.Name, n) })
	if !ok {
		return Server{}, false
	}
	return f.Servers[i], true
}

// Tool returns the locked tool of that name at the server.
func (s Server) Tool(name string) (Tool, bool) {
	i, ok := slices.BinarySearchFunc(s.Tools, name, func(t Tool, n string) int { return cmp.Compare(t.Name, n) })
	if !ok {
		return Tool{}, false
	}
	return s.Tools[i], true
}

// Names returns the names of the locked tools.
func (s Server) Names() []string {
	names := make([]string, len(s.Tools))
	for i, t := range s.Tools {
		names[i] = t.Name
	}
	return names
}

// Put replaces the lock of a server. A server without tools is removed.
func (f *File) Put(s Server) {
	f.Servers = slices.DeleteFunc(f.Servers, func(old Server) bool { return old.Name == s.Name })
	if len(s.Tools) == 0 {
		return
	}
	slices.SortFunc(s.Tools, func(a, b Tool) int { return cmp.Compare(a.Name, b.Name) })
	f.Servers = append(f.Servers, s)
	slices.SortFunc(f.Servers, func(a, b Server) int { return cmp.Compare(a.Name, b.Name) })
}

// Marshal returns the file's bytes: indented by two spaces, names sorted, and each definition as received,
// key for key and digit for digit, so that a change of one argument is a diff of a few lines.
func (f *File) Marshal() []byte {
	var b bytes.Buffer
	b.WriteString("{\"format\":1,\"servers\":{")
	for i, s := range f.Servers {
		comma(&b, i)
		put(&b, s.Name)
		b.WriteString(":{\"identity\":")
		put(&b, s.Identity)
		b.WriteString(",\"tools\":{")
		for j, t := range s.Tools {
			comma(&b, j)
			put(&b, t.Name)
			b.WriteByte(':')
			put(&b, struct {
				Effect registry.Effect `json:"effect"`
				Locked string          `json:"locked"`
				From   string          `json:"from"`
				Digest string          `json:"digest"`
			}{t.Effect, t.Locked, t.From, t.Digest})
			b.Truncate(b.Len() - 1) // the closing brace
			b.WriteString(",\"definition\":")
			b.Write(t.Raw)
			b.WriteByte('}')
		}
		b.WriteString("}}")
	}
	b.WriteString("}}")
	var out bytes.Buffer
	if err := json.Indent(&out, b.Bytes(), "", "  "); err != nil {
		panic("lockfile: JSON that was decoded must encode: " + err.Error())
	}
	out.WriteByte('\n')
	return out.Bytes()
}

func comma(b *bytes.Buffer, i int) {
	if i > 0 {
		b.WriteByte(',')
	}
}

// put appends v as JSON on one line.
func put(b *bytes.Buffer, v any) {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("lockfile: plain data must encode: " + err.Error())
	}
	b.Truncate(b.Len() - 1)
}
