package importer

import (
	"path/filepath"
	"slices"
	"strings"

	decided "github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/egress"
	"github.com/catalogd/catalogd/internal/propose"
	"github.com/catalogd/catalogd/internal/secret"
)

// trust is what policy/trust/data.yaml would have to hold for the servers, as comments of CUE: a person reads
// it, and copies what is to be trusted. A target that two servers share gets one entry, because two that
// cover it deny it.
func trust(declared []declaration, root string) string {
	var b strings.Builder
	b.WriteString("// Importing is not trusting: nothing above is started or dialled until policy/trust/data.yaml has an entry for it. Read\n" +
		"// what each would let in, then copy it there, below entries:, without the slashes and the blank behind them.\n//\n")
	var entries []propose.Entry
	for _, d := range declared {
		target, why := d.target()
		if why != "" {
			b.WriteString("//   # " + d.name + ": " + why + "\n")
			continue
		}
		e := propose.For(target, d.observed(target, root))
		e.Name = d.name
		entries = propose.Join(entries, e)
	}
	// Commands first.
	slices.SortStableFunc(entries, func(a, b propose.Entry) int { return strings.Compare(a.Fields[0].Key, b.Fields[0].Key) })
	for _, e := range entries {
		for line := range strings.Lines(e.YAML()) {
			b.WriteString("// " + line)
		}
	}
	return b.String()
}

const unknown = " not known yet: fill in the declaration, then ask `catalogd trust --propose`"

// target is what the declaration reaches, as far as that can be said without a look at this machine; else why
// not.
func (d declaration) target() (decided.Target, string) {
	if d.url != nil {
		if d.url.hole != "" {
			return decided.Target{}, "the URL is" + unknown
		}
		u, err := egress.ParseURL(d.url.literal)
		if err != nil {
			return decided.Target{}, "the URL can't be trusted as it is: `catalogd check` says why"
		}
		target := decided.Target{Kind: decided.HTTP, URL: &u, Secrets: d.secrets()}
		for _, e := range d.env {
			target.Headers = append(target.Headers, e.key)
		}
		return target, ""
	}
	if d.command.hole != "" || d.cwd != nil && d.cwd.hole != "" || slices.ContainsFunc(d.args, func(w word) bool { return w.hole != "" }) {
		return decided.Target{}, "the command is" + unknown
	}
	c := decided.Command{Declared: d.command.literal, Path: d.command.literal}
	if filepath.IsAbs(c.Declared) {
		if d.file != "" {
			c.Path = d.file
		} else if file, err := filepath.EvalSymlinks(c.Declared); err == nil {
			c.Path = file
		}
	}
	for _, a := range d.args {
		c.Args = append(c.Args, a.literal)
	}
	if d.cwd != nil {
		c.Dir = d.cwd.literal
	}
	for _, e := range d.env {
		c.Env = append(c.Env, e.key)
	}
	return decided.Target{Kind: decided.Stdio, Command: &c, Secrets: d.secrets()}, ""
}

func (d declaration) secrets() []string {
	values := map[string]secret.Value{}
	for _, e := range d.env {
		if e.secret != "" {
			values[e.key] = secret.Value{Secret: "env:" + e.secret}
		}
	}
	return secret.References(values)
}

// anyRoot is a placeholder for the catalog's directory, where that is not known.
const anyRoot = "/catalog/that/is/not/there/yet"

// observed is what the connect decision would see of the target in a catalog at root.
func (d declaration) observed(target decided.Target, root string) decided.Observed {
	if target.Command == nil {
		return decided.Observed{}
	}
	c := *target.Command
	if d.file != "" {
		c.Path = d.file
	}
	if root == "" {
		root = anyRoot
	}
	runs := egress.Recognise(c)
	return decided.Observed{RunsCode: runs.RunsCode, Unpinned: runs.Unpinned, InTree: egress.InTree(c, root)}
}
