package importer

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"cuelang.org/go/cue/format"
	"cuelang.org/go/cue/literal"

	"github.com/catalogd/catalogd/problem"
)

// write prints the declarations as one file, as `cue fmt` would. CUE's own printer does that (nothing is
// evaluated here), so that what is written stays what `cue fmt` leaves alone.
func write(file string, declared []declaration, root string) ([]byte, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "// Imported from %s by `catalogd import mcp-config`.\npackage catalog\n", problem.Printable(oneLine(path.Base(strings.ReplaceAll(file, `\`, "/")))))
	for _, d := range declared {
		if d.holes == 0 {
			d.write(&b)
		} else if err := d.comment(&b); err != nil {
			return nil, err
		}
	}
	b.WriteString("\n")
	b.WriteString(trust(declared, root))
	out, err := format.Source([]byte(b.String()))
	if err != nil {
		return nil, fmt.Errorf("formatting the imported servers: %w", err)
	}
	return out, nil
}

// comment prints a declaration with holes as a comment: one server that needs a hand must not keep the
// catalog from loading.
func (d *declaration) comment(b *strings.Builder) error {
	var block strings.Builder
	d.write(&block)
	out, err := format.Source([]byte(block.String()))
	if err != nil {
		return fmt.Errorf("formatting an imported server: %w", err)
	}
	b.WriteString("\n// Not declared yet: write what each error(...) asks for, and take the slashes and the blank behind them away.\n//\n")
	for line := range strings.Lines(strings.TrimSpace(string(out))) {
		b.WriteString(strings.TrimRight("// "+line, " \n") + "\n")
	}
	return nil
}

func (d *declaration) write(b *strings.Builder) {
	b.WriteString("\n")
	if d.name != d.original {
		fmt.Fprintf(b, "// %s\n", problem.Printable(oneLine(shown(d.original))))
	}
	fmt.Fprintf(b, "servers: %s: {\n", label(d.name))
	if d.url != nil {
		fmt.Fprintf(b, "\ttransport: http: {\n\t\turl: %s\n", d.url.cue())
		entries(b, "headers", d.env)
	} else {
		fmt.Fprintf(b, "\ttransport: stdio: {\n\t\tcommand: %s\n", d.command.cue())
		if len(d.args) > 0 {
			b.WriteString("\t\targs: " + words(d.args) + "\n")
		}
		entries(b, "env", d.env)
		if d.cwd != nil {
			fmt.Fprintf(b, "\t\tcwd: %s\n", d.cwd.cue())
		}
	}
	fmt.Fprintf(b, "\t}\n\tprefix: %s\n\tdiscover: {", quote(prefix(d.name)))
	if len(d.only)+len(d.except) > 0 {
		b.WriteString("\n")
		for _, l := range []struct {
			key   string
			names []string
		}{{"only", d.only}, {"except", d.except}} {
			if len(l.names) == 0 {
				continue
			}
			var list []word
			for _, n := range l.names {
				list = append(list, word{literal: n})
			}
			fmt.Fprintf(b, "\t\t%s: %s\n", l.key, words(list))
		}
		b.WriteString("\t")
	}
	b.WriteString("}\n}\n")
}

// prefix keeps the tools of servers apart, as the clients do.
func prefix(name string) string { return strings.TrimRight(name, "_") + "_" }

// words is a list: on one line while it is short and whole.
func words(list []word) string {
	var all []string
	long := 0
	for _, w := range list {
		all = append(all, w.cue())
		long += len(w.cue()) + 2
		if w.hole != "" {
			long += 120
		}
	}
	if long <= 100 {
		return "[" + strings.Join(all, ", ") + "]"
	}
	return "[\n\t\t\t" + strings.Join(all, ",\n\t\t\t") + ",\n\t\t]"
}

func entries(b *strings.Builder, field string, list []entry) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(b, "\t\t%s: {\n", field)
	for _, e := range list {
		switch {
		case e.secret == "":
			fmt.Fprintf(b, "\t\t\t%s: %s\n", label(e.key), quote(e.literal))
		case e.prefix == "":
			fmt.Fprintf(b, "\t\t\t%s: secret: %s\n", label(e.key), quote("env:"+e.secret))
		default:
			fmt.Fprintf(b, "\t\t\t%s: {secret: %s, prefix: %s}\n", label(e.key), quote("env:"+e.secret), quote(e.prefix))
		}
	}
	b.WriteString("\t\t}\n")
}

// cue is the word as an expression; a hole is an error that says what to do.
func (w word) cue() string {
	if w.hole != "" {
		return "error(" + quote(w.hole) + ")"
	}
	return quote(w.literal)
}

func quote(s string) string { return literal.String.Quote(s) }

var plainLabel = regexp.MustCompile(`^[A-Z][A-Za-z0-9_]*$|^[a-z][a-z0-9]*[_A-Z0-9][A-Za-z0-9_]*$`)

// label is a field's name. A lower-case word may be a keyword of CUE's or a name that it knows, and a leading
// _ hides a field, so only what can be neither stands without quotes.
func label(s string) string {
	if plainLabel.MatchString(s) {
		return s
	}
	return quote(s)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
