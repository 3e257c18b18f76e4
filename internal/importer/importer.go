// Package importer reads the JSON or YAML in which desktop clients and editors keep their MCP servers, and
// writes the servers as CUE of a catalog. It reads text and writes text: it starts nothing, dials nothing and
// looks at no environment, but for the files of commands where Config.Resolve looks for them.
//
// An import has five steps. The reader (json.go, yaml.go) makes a tree in which every value knows its line
// and column, and takes the comments and trailing commas that editors allow. The shapes (shape.go) find the
// servers in it under the keys that the clients use, and recognize.go tells which client's file it is. The
// translation (translate.go, word.go, secret.go) turns each string into what a catalog can hold: literal
// text, a reference to a secret, or a hole. The writers (cue.go, trust.go) print the declarations, and the
// trust that they would need, commented out: importing is not trusting.
//
// A secret of the file is never written, and no message repeats a value of the file. What can't be a
// reference (an argument, a URL) becomes a hole: CUE's error builtin, with what to do, in a declaration that
// is written as a comment. One server that can't be imported costs only itself: it is refused at its place,
// and the others are written. Nothing is lost in silence: whatever is changed or left out is a Note.
package importer

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/internal/clients"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Config says what to read. File is the name that positions and the written text carry; Names are the servers
// to take, as the file calls them, and none means every server that is not switched off.
type Config struct {
	File  string
	Names []string
	// Client names the client whose file it is (internal/clients); empty, it is recognized by what the file
	// has.
	Client string
	// Resolve finds the absolute file of a command, without links; an error says that there is none. nil
	// looks for none.
	Resolve func(command string) (file string, err error)
	// Root is the absolute directory of the catalog that the servers are for, or empty if that is not known.
	// Proposed trust entries depend on what is below it.
	Root string
}

// Import is what a file became.
type Import struct {
	// Client is the name of the client as which the file was read, Title the same for people; Trait is by
	// what it was recognized, and empty where Config named it.
	Client, Title, Trait string
	Servers              []Server
	// CUE is one formatted file of package catalog: the declarations, and below them the trust data as
	// comments.
	CUE []byte
	// Notes are in the order of the file.
	Notes []Note
	// Refused are the servers that could not be imported, each with the reason, in the order of the file.
	Refused []Note
}

// Server is one declaration, by its name in the catalog.
type Server struct {
	Name string
	// Original is the name in the file.
	Original string
	Position problem.Position
	// Holes counts the places that must be filled in; a server with any is written as a comment.
	Holes int
}

// Note says what of the file was changed or left out, or why the file can't be imported. Path is a JSON path,
// dots between the keys.
type Note struct {
	problem.Position
	Path    string
	Message string
}

// String is file:line:col: path: message.
func (n Note) String() string {
	text := n.Position.String() + ": "
	if n.Path != "" {
		text += n.Path + ": "
	}
	return problem.Printable(text + n.Message)
}

// RefusedError holds everything for which nothing of a file can be imported.
type RefusedError struct{ Faults []Note }

func (e *RefusedError) Error() string {
	lines := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

// UnknownError is a name of Config.Names that no server of the file has.
type UnknownError struct {
	File, Name string
	// Nearest are the likeliest names of the file; Known are all.
	Nearest, Known []string
}

func (e *UnknownError) Error() string {
	if len(e.Nearest) > 0 {
		return fmt.Sprintf("%s has no server %q; did you mean %s?", e.File, e.Name, strings.Join(e.Nearest, ", "))
	}
	return fmt.Sprintf("%s has no server %q; it has %s", e.File, e.Name, strings.Join(e.Known, ", "))
}

// Read translates the file's text. It fails with a *RefusedError if nothing of the file can be imported as
// asked, and with an *UnknownError for a name that is not in it.
func Read(data []byte, cfg Config) (*Import, error) {
	r := &reading{file: cfg.File, resolve: cfg.Resolve, yaml: isYAML(bytes.TrimPrefix(data, []byte("\uFEFF")))}
	if cfg.Client != "" {
		client, err := clients.Named(cfg.Client)
		if err != nil {
			return nil, err
		}
		r.client = client
	}
	root, err := parse(cfg.File, data)
	if err != nil {
		return nil, err
	}
	found := r.servers(root)
	chosen, err := r.choose(found, cfg.Names)
	if err != nil {
		return nil, err
	}
	out := &Import{}
	if out.Trait, err = r.recognize(); err != nil {
		return nil, err
	}
	if out.Client, out.Title = r.client.Name, r.client.Title; out.Trait == anyClient {
		out.Title = "an MCP client"
	}
	declared := r.translate(chosen)
	if len(declared) == 0 {
		return nil, &RefusedError{inOrder(r.faults)}
	}
	out.Notes, out.Refused = inOrder(r.notes), inOrder(r.faults)
	for _, d := range declared {
		out.Servers = append(out.Servers, Server{d.name, d.original, d.position, d.holes})
	}
	out.CUE, err = write(cfg.File, declared, cfg.Root)
	return out, err
}

// translate returns the declarations of the servers that can be imported. Of the others only the faults are
// kept.
func (r *reading) translate(chosen []foundServer) (declared []declaration) {
	t := newTranslation(r, chosen)
	for _, s := range chosen {
		notes, faults := len(r.notes), len(r.faults)
		if d := t.server(s); len(r.faults) == faults {
			declared = append(declared, d)
		} else {
			r.notes = r.notes[:notes]
		}
	}
	return declared
}

// choose takes the named servers, or all that are not switched off.
func (r *reading) choose(all []foundServer, names []string) ([]foundServer, error) {
	known := make([]string, len(all))
	for i, s := range all {
		known[i] = s.name
	}
	for _, name := range names {
		if !slices.Contains(known, name) && len(known) > 0 {
			return nil, &UnknownError{r.file, name, registry.Nearest(name, known), known}
		}
	}
	var chosen []foundServer
	for _, s := range all {
		named := slices.Contains(names, s.name)
		switch {
		case len(names) > 0 && !named:
		case s.off && !named:
			r.note(s.value, s.path, "the server is switched off here and was left out; name it on the command line to import it")
		default:
			chosen = append(chosen, s)
		}
	}
	if len(r.faults) == 0 && len(all) == 0 {
		keys := "mcpServers, servers, mcp or context_servers, by client, or be objects with a command or url at the top"
		if len(r.client.Under) > 0 {
			keys = strings.Join(r.client.Under, " or ") + ", as " + r.client.Title + " has them"
		}
		r.fault(r.root, "", "there are no servers here: they must be under %s", keys)
	} else if len(r.faults) == 0 && len(chosen) == 0 {
		r.fault(r.root, "", "every server here is switched off; name those that are wanted on the command line")
	}
	if len(chosen) == 0 {
		return nil, &RefusedError{inOrder(r.faults)}
	}
	return chosen, nil
}

func inOrder(notes []Note) []Note {
	slices.SortStableFunc(notes, func(a, b Note) int { return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col)) })
	return notes
}
