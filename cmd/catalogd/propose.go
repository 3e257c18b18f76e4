package main

import (
	"fmt"
	"strings"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/problem"
)

// proposedJSON is the JSON form of a proposal.
type proposedJSON struct {
	Name string `json:"name"`
	// Entry is data.trust.entries.NAME.
	Entry    map[string]any        `json:"entry"`
	Grants   []grantJSON           `json:"grants"`
	Ways     []string              `json:"ways"`
	For      []subjectJSON         `json:"for"`
	Replaces []generation.Replaced `json:"replaces"`
	Denied   []string              `json:"denied"`
}

type grantJSON struct {
	Field  string `json:"field"`
	Grants string `json:"grants"`
}

type subjectJSON struct {
	Kind string           `json:"kind"`
	Name string           `json:"name"`
	Pos  problem.Position `json:"pos"`
}

// propose prints trust entries for what is not trusted. It exits with 0 whether there are any or not.
func (c *trustCmd) propose(e *env, catalog *catalogd.Catalog) error {
	proposals, trusted, err := catalog.Proposals(e.ctx, c.Name)
	if err != nil {
		return err
	}
	if e.json {
		out := make([]proposedJSON, 0, len(proposals))
		for _, p := range proposals {
			out = append(out, asJSON(p))
		}
		return e.printJSON(out)
	}
	var b strings.Builder
	if c.Name != "" {
		for _, r := range trusted {
			fmt.Fprintf(&b, "# %s %s is trusted already, by entry %s at %s\n", r.Kind, r.Name, r.Trust, r.Written)
		}
	} else if len(proposals) == 0 {
		b.WriteString("# everything that is declared is trusted\n")
	}
	if len(proposals) > 0 {
		b.WriteString("# Read what each field grants, then put the entry below entries: in policy/trust/data.yaml.\n")
	}
	for _, p := range proposals {
		entry := p.Entry.YAML(head(p, e.seen)...)
		if len(p.Denied) > 0 { // to be read, not to be copied
			entry = strings.ReplaceAll(strings.TrimSuffix("# "+strings.ReplaceAll(entry, "\n", "\n# "), "# "), "#   # ", "  # ")
		}
		b.WriteString(entry)
	}
	_, err = fmt.Fprint(e.stdout, b.String())
	return err
}

// head describes what a proposal is for, and which further steps are needed.
func head(p generation.Proposal, at func(problem.Position) problem.Position) (lines []string) {
	for _, r := range p.For {
		lines = append(lines, fmt.Sprintf("%s %s, declared at %s: %s", r.Kind, r.Name, at(r.Pos), r.Target))
		if r.Missing != "" {
			lines = append(lines, r.Missing,
				"so this is written without its file: once it can be run, ask again, as the file may need more")
		}
	}
	for _, r := range p.Replaces {
		why := ", as exactly one entry may cover it"
		if len(p.Replaces) == 1 {
			why = ": " + strings.Join(r.Changes, ", ")
		}
		lines = append(lines, fmt.Sprintf("instead of entry %s at %s%s", r.Name, r.Position, why))
	}
	for _, why := range p.Denied {
		lines = append(lines, "not enough, the policy would still deny: "+why)
	}
	return lines
}

func asJSON(p generation.Proposal) proposedJSON {
	out := proposedJSON{
		Name: p.Entry.Name, Entry: p.Entry.Value(), Grants: []grantJSON{}, Ways: append([]string{}, p.Entry.Ways...),
		For: []subjectJSON{}, Replaces: append([]generation.Replaced{}, p.Replaces...), Denied: append([]string{}, p.Denied...),
	}
	for _, f := range p.Entry.Fields {
		out.Grants = append(out.Grants, grantJSON{f.Key, f.Grants})
	}
	for _, r := range p.For {
		out.For = append(out.For, subjectJSON{r.Kind, r.Name, r.Pos})
	}
	return out
}
