// Package lock is catalog.lock.json: the definitions of the tools that upstream servers offer, as a person has reviewed
// them, in git beside the catalog.
//
// A File holds, for each server that discovers its tools, who the server said it was, and for each of its tools the
// whole definition as it came, the digest of its content, when and from which version of the server it was locked, and
// the effect that the operator gave it. Read takes it strictly, Marshal writes it, the same bytes for the same content.
// A Definition is one tool as a server offers it, read without loss; Compare says how two of them differ. Join makes
// ordinary tools of the locked ones. Nothing here connects to anything.
package lock

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
	// Servers are in the order of their names.
	Servers []Server
}

// Server is what is locked of one server.
type Server struct {
	Name     string
	Identity Identity
	// Tools are in the order of their names at the server.
	Tools []Tool
	// Pos is where the server stands in the file.
	Pos problem.Position
}

// Identity is who a server says it is.
type Identity struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// Protocol is the revision of MCP that was negotiated when the lock was written.
	Protocol string `json:"protocol"`
}

// Tool is one locked tool.
type Tool struct {
	Definition
	// Effect is the operator's.
	Effect registry.Effect
	// Locked is when, RFC 3339 in UTC; From is the server's version at that time.
	Locked, From string
	// Pos is where the tool stands in the file.
	Pos problem.Position
}

// Server returns what is locked of the server; ok is false where nothing is.
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

// Names are the names of the locked tools.
func (s Server) Names() []string {
	names := make([]string, len(s.Tools))
	for i, t := range s.Tools {
		names[i] = t.Name
	}
	return names
}

// Put sets what is locked of a server. One without tools is taken out.
func (f *File) Put(s Server) {
	f.Servers = slices.DeleteFunc(f.Servers, func(old Server) bool { return old.Name == s.Name })
	if len(s.Tools) == 0 {
		return
	}
	slices.SortFunc(s.Tools, func(a, b Tool) int { return cmp.Compare(a.Name, b.Name) })
	f.Servers = append(f.Servers, s)
	slices.SortFunc(f.Servers, func(a, b Server) int { return cmp.Compare(a.Name, b.Name) })
}

// Marshal is the file's bytes: two spaces of indent, names in order, and each definition as it came, key for key and
// digit for digit, so that a change of one argument is a change of a few lines.
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
		panic("lock: what was read as JSON is JSON: " + err.Error())
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
		panic("lock: plain data encodes: " + err.Error())
	}
	b.Truncate(b.Len() - 1)
}
