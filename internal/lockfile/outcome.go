package lockfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/contract/compat"
	"github.com/catalogd/catalogd/registry"
)

// State is the state of one tool of a server under a lock.
type State string

// The states.
const (
	Added     State = "new"       // locked for the first time
	Changed   State = "changed"   // locked with another definition than before
	Unchanged State = "unchanged" // locked as before
	LeftOut   State = "left out"  // not in the catalog; Reason says why
)

// Outcome is the result of locking for one tool that is locked, or offered and can't be locked.
type Outcome struct {
	Server string `json:"server"`
	// Tool is its name at the server, Name the one in the catalog. Name is empty for an offered tool that
	// can't be locked, and for one that is locked only for declared tools.
	Tool string `json:"tool"`
	Name string `json:"name,omitempty"`
	// Mapped reports that the server's name is not portable, and that Name replaces it.
	Mapped bool            `json:"mapped,omitempty"`
	Effect registry.Effect `json:"effect,omitempty"`
	State  State           `json:"state"`
	// Reason is why the tool is left out.
	Reason string `json:"reason,omitempty"`
	// Warnings are problems of its definition that do not prevent serving it. Findings are the suspicious
	// parts of the texts of a new or changed one.
	Warnings []string `json:"warnings,omitempty"`
	Findings []string `json:"findings,omitempty"`
}

// Outcomes returns the outcome of each locked tool, and of each offered one that can't be locked, in the
// order of servers and tools. before is the lock that after replaces, offers are by server.
func Outcomes(build *registry.Build, before, after *File, offers map[string]Offer) []Outcome {
	joined := Join(build, after)
	type key struct{ server, tool string }
	leftOut, offered := map[key]Degraded{}, map[key]registry.Tool{}
	for _, d := range joined.Degraded {
		leftOut[key{d.Server, d.Tool}] = d
	}
	for _, t := range joined.Tools {
		offered[key{t.Binding.MCP.Server, t.Binding.MCP.Tool}] = t
	}
	var out []Outcome
	for _, s := range after.Servers {
		was, _ := before.Server(s.Name)
		i := slices.IndexFunc(build.Servers, func(r registry.Server) bool { return r.Name == s.Name })
		if i < 0 {
			continue
		}
		for _, t := range s.Tools {
			o := Outcome{Server: s.Name, Tool: t.Name, Effect: t.Effect, State: Added}
			if old, ok := was.Tool(t.Name); ok {
				o.State = Changed
				if old.Digest == t.Digest {
					o.State = Unchanged
				}
			}
			if o.State != Unchanged {
				o.Findings = Findings(t.Definition, nil)
			}
			if d, ok := leftOut[key{s.Name, t.Name}]; ok {
				o.State, o.Name, o.Reason = LeftOut, d.Name, d.Reason
			} else if named, ok := offered[key{s.Name, t.Name}]; ok {
				o.Name, o.Warnings = named.Name, Warnings(t.Definition)
			}
			declared := build.Servers[i]
			o.Mapped = o.Name != "" && declared.Discover.Tools[t.Name].Rename == "" && o.Name != declared.Prefix+t.Name
			out = append(out, o)
		}
	}
	for server, offer := range offers {
		for name, why := range offer.Bad {
			out = append(out, Outcome{Server: server, Tool: name, State: LeftOut, Reason: why})
		}
	}
	slices.SortFunc(out, func(a, b Outcome) int {
		return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Tool, b.Tool))
	})
	return out
}

// Warnings returns the problems of a definition that do not prevent serving it.
func Warnings(d Definition) (out []string) {
	d = d.opened()
	for _, s := range []struct{ field, what string }{{"inputSchema", "arguments"}, {"outputSchema", "results"}} {
		schema := d.part(s.field)
		if schema == nil {
			continue
		}
		if uri := contract.UnknownDialect(schema); uri != "" {
			out = append(out, fmt.Sprintf(
				"the schema of its %s is of an unknown dialect, %q, and read by the keywords that it uses", s.what, uri))
		}
		if spec, err := readResult(schema); s.field == "outputSchema" && err == nil && spec.Value {
			out = append(out, "the schema of its results is of no object, which clients of revisions before "+
				"2026-07-28 don't support: they don't receive it")
		}
		if s.field == "inputSchema" {
			out = append(out, compat.BadDefaults(schema)...)
		}
	}
	return out
}

// Notes returns the remarks on the outcome, on one line.
func (o Outcome) Notes() string {
	var parts []string
	if o.Reason != "" {
		parts = append(parts, o.Reason)
	}
	if o.Mapped && o.State != LeftOut {
		parts = append(parts, "its name at the server is not one that every client takes")
	}
	parts = append(parts, o.Warnings...)
	for _, f := range o.Findings {
		parts = append(parts, "look at it: "+f)
	}
	return strings.Join(parts, "; ")
}
