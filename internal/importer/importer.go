// Package importer reads the JSON in which desktop clients and editors keep their MCP servers, and writes the servers as
// CUE of a catalog. It reads text and writes text: it starts nothing, dials nothing and looks at no environment.
//
// An import has four steps. The reader (json.go) makes a tree in which every value knows its line and column,
// and takes the comments and trailing commas that editors allow. The shapes (shape.go) find the servers in it under the
// names that the clients use. The translation (translate.go, secret.go) turns each string into what a catalog can hold:
// literal text, a reference to a secret, or a hole. The writers (cue.go, trust.go) print the declarations, and the
// trust that they would need, commented out: importing is not trusting.
//
// A secret of the file is never written, and no message repeats a value of the file. What can't be a reference (an
// argument, a URL) becomes a hole: CUE's error builtin, which `catalogd check` refuses at its place, with what to do.
// Nothing is lost in silence: whatever is changed or left out is a Note.
package importer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Config says what to read. File is the name that positions and the written text carry; Names are the servers to take,
// as the file calls them, and none means every server that is not switched off.
type Config struct {
	File  string
	Names []string
}

// Import is what a file became.
type Import struct {
	Servers []Server
	// CUE is one formatted file of package catalog: the declarations, and below them the trust data as comments.
	CUE []byte
	// Notes are in the order of the file.
	Notes []Note
}

// Server is one declaration, by its name in the catalog.
type Server struct {
	Name string
	// Original is the name in the file.
	Original string
	Position problem.Position
	// Holes counts the places that `catalogd check` refuses until they are filled in.
	Holes int
}

// Note says what of the file was changed or left out, or why the file can't be imported. Path is a JSON path, dots
// between the keys.
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

// RefusedError holds everything for which a file can't be imported.
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

// Read translates the file's text. It fails with a *RefusedError for a file that can't be imported as asked, and with
// an *UnknownError for a name that is not in it.
func Read(data []byte, cfg Config) (*Import, error) {
	root, err := parse(cfg.File, data)
	if err != nil {
		return nil, err
	}
	r := &reading{file: cfg.File}
	found := r.servers(root)
	chosen, err := r.choose(found, cfg.Names)
	if err != nil {
		return nil, err
	}
	t := newTranslation(r, chosen)
	var declared []declaration
	for _, s := range chosen {
		declared = append(declared, t.server(s))
	}
	if len(r.faults) > 0 {
		return nil, &RefusedError{inOrder(r.faults)}
	}
	out := &Import{Notes: inOrder(r.notes)}
	for _, d := range declared {
		out.Servers = append(out.Servers, Server{d.name, d.original, d.position, d.holes})
	}
	out.CUE, err = write(cfg.File, declared)
	return out, err
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
	if len(all) == 0 && len(r.faults) == 0 {
		r.fault(r.root, "", "there are no servers here: they must be under mcpServers, servers, mcp or context_servers, by client")
	} else if len(chosen) == 0 && len(r.faults) == 0 {
		r.fault(r.root, "", "every server here is switched off; name those that are wanted on the command line")
	}
	if len(r.faults) > 0 {
		return nil, &RefusedError{inOrder(r.faults)}
	}
	return chosen, nil
}

func inOrder(notes []Note) []Note {
	slices.SortStableFunc(notes, func(a, b Note) int { return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col)) })
	return notes
}
