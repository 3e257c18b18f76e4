package lock

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/registry"
)

// State says what a lock makes of one tool of a server.
type State string

// The states.
const (
	Added     State = "new"       // locked for the first time
	Changed   State = "changed"   // locked with another definition than before
	Unchanged State = "unchanged" // locked as before
	LeftOut   State = "left out"  // no tool of the catalog, for the reason that stands beside it
)

// Outcome is what became of one tool that is locked, or offered and can't be.
type Outcome struct {
	Server string `json:"server"`
	// Tool is its name at the server, Name the one in the catalog. Name is empty for what is offered and
	// can't be locked, and for what is locked for declared tools alone.
	Tool string `json:"tool"`
	Name string `json:"name,omitempty"`
	// Mapped: the server's name is not one that every client takes, and Name is what became of it.
	Mapped bool            `json:"mapped,omitempty"`
	Effect registry.Effect `json:"effect,omitempty"`
	State  State           `json:"state"`
	// Reason is why it is left out.
	Reason string `json:"reason,omitempty"`
	// Warnings are what a person should know of its definition; it is served all the same. Findings are what
	// is suspicious in the texts of one that is new or changed.
	Warnings []string `json:"warnings,omitempty"`
	Findings []string `json:"findings,omitempty"`
}

// Outcomes says what a lock makes of each of its tools, and what can't be locked of what servers offer, in
// the order of servers and tools. before is the lock that it replaces, offers are by server.
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

// Warnings are what a person should know of a definition that is served as it is.
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
				"2026-07-28 don't know: they are not told of it")
		}
		if s.field == "inputSchema" {
			out = append(out, contract.BadDefaults(schema)...)
		}
	}
	return out
}

// Notes are what there is to say of the outcome, in one line.
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
