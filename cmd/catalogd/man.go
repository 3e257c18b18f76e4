package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// manCmd writes the man pages, for `make dist`.
type manCmd struct {
	Dir  string `arg:"" help:"The directory to write to; created if it does not exist."`
	Date string `help:"The date in the pages, as YYYY-MM-DD."`
}

// Run writes catalogd.1, and a page for each command.
func (c *manCmd) Run(*env) error {
	if _, err := time.Parse(time.DateOnly, c.Date); c.Date != "" && err != nil {
		return fmt.Errorf("--date is not a day such as 2026-12-31: %q", c.Date)
	}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return err
	}
	root := newParser(new(cli), io.Discard, io.Discard, func(int) {}).Model.Node
	for _, node := range append([]*kong.Node{root}, root.Children...) {
		if node.Hidden {
			continue
		}
		page := manPage{date: c.Date}
		page.write(node)
		name := filepath.Join(c.Dir, strings.ReplaceAll(node.FullPath(), " ", "-")+".1")
		if err := os.WriteFile(name, []byte(page.String()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// exitStatuses are the exit codes of every command with what they mean. The man pages and docs/cli.md list them.
var exitStatuses = [][2]string{
	{"0", "Success."},
	{"1", "The catalog, a test or a call has a problem, or there is what the command was asked to fail on."},
	{"2", "The command could not run at all, as with an unknown flag or without a daemon."},
}

// environment are the variables that catalogd itself reads, with what they do. The man pages and docs/cli.md list
// them.
var environment = [][2]string{
	{tokenVariable, "The token for a daemon that is asked, and with stdio --tokens that of the caller."},
	{serverVariable, "The daemon that a command with --server asks if it is given none; not where -C names a directory."},
	{"CATALOGD_LOG_LEVEL", "As --log-level."},
	{"CATALOGD_LOG_FORMAT", "As --log-format."},
	{completeTimeVariable, "How long completion may take, by default " + completeTime.String() + "."},
	{"XDG_STATE_HOME", "Where the state directory catalogd is, by default ~/.local/state; " +
		"on macOS it is ~/Library/Application Support/catalogd."},
	{"HOME", "The search for a catalog's root ends there, and the state directory is below it by default."},
	{"PATH", "Where commands of the catalog without a slash are found; only absolute directories count."},
	{"TMPDIR", "Where private directories of commands are made without a state directory, by default /tmp."},
	{"COLUMNS", "How many columns the tables of matrix may take; by default what the terminal has, " +
		"and any number elsewhere."},
	{"NO_COLOR", "No colours, if it is not empty."},
	{"TERM", "No line of progress, if it is dumb."},
	{"GOGC", "How far the heap may grow before it is collected, in percent; by default 400 with serve and stdio."},
	{"TZ", "The time zone of workers and commands."},
	{"HTTPS_PROXY, HTTP_PROXY, NO_PROXY", "The proxy for a daemon of --server on another machine, and for collectors " +
		"by https; tools and servers are reached directly."},
}

// manPage is a page in the macros of man(7), which man-db and mandoc read.
type manPage struct {
	strings.Builder
	date string
}

func (p *manPage) write(node *kong.Node) {
	name := strings.ReplaceAll(node.FullPath(), " ", "-")
	fmt.Fprintf(p, ".TH %s 1 %q %q catalogd\n", strings.ToUpper(name), p.date, "catalogd "+version())
	p.macro("SH", "NAME")
	p.text(name + " - " + strings.TrimSuffix(node.Help, "."))
	p.macro("SH", "SYNOPSIS")
	leaves := node.Leaves(true)
	if node.Parent == nil || len(leaves) == 0 {
		p.macro("B", strings.TrimSpace("catalogd "+node.Summary()))
	} else {
		for i, leaf := range leaves {
			if i > 0 {
				p.macro("br")
			}
			p.macro("B", "catalogd "+leaf.Summary())
		}
	}
	if node.Parent == nil {
		p.macro("SH", "COMMANDS")
		for _, leaf := range leaves {
			p.macro("TP")
			p.macro("B", leaf.Path())
			p.text(leaf.Help)
		}
	} else if len(leaves) == 0 {
		p.macro("SH", "DESCRIPTION")
		p.text(node.Help)
		p.values(node)
	}
	for _, leaf := range leaves {
		if node.Parent != nil {
			p.macro("SH", strings.ToUpper(leaf.Path()))
			p.text(leaf.Help)
			p.values(leaf)
		}
	}
	p.macro("SH", "OPTIONS OF EVERY COMMAND")
	root := node
	for root.Parent != nil {
		root = root.Parent
	}
	for _, f := range root.Flags {
		p.flag(f)
	}
	p.macro("SH", "EXIT STATUS")
	for _, status := range exitStatuses {
		p.macro("TP")
		p.macro("B", status[0])
		p.text(status[1])
	}
	p.macro("SH", "ENVIRONMENT")
	for _, variable := range environment {
		p.macro("TP")
		p.macro("B", variable[0])
		p.text(variable[1])
	}
	p.macro("SH", "SEE ALSO")
	var others []string
	for _, child := range root.Children {
		if !child.Hidden && child != node {
			others = append(others, "catalogd-"+child.Name+"(1)")
		}
	}
	if node != root {
		others = []string{"catalogd(1)"}
	}
	p.text(strings.Join(others, ", "))
}

// values writes the arguments and flags of a command itself.
func (p *manPage) values(node *kong.Node) {
	for _, arg := range node.Positional {
		p.macro("TP")
		p.macro("B", arg.ShortSummary())
		p.text(arg.Help)
	}
	for _, flag := range node.Flags {
		if !flag.Hidden {
			p.flag(flag)
		}
	}
}

func (p *manPage) flag(f *kong.Flag) {
	name := "--" + f.Name
	if f.Short != 0 {
		name = "-" + string(f.Short) + ", " + name
	}
	if !f.IsBool() && !f.IsCounter() {
		name += "=" + f.FormatPlaceHolder()
	}
	p.macro("TP")
	p.macro("B", name)
	p.text(f.Help)
}

// macro writes a line that begins with a macro. Each argument is quoted.
func (p *manPage) macro(name string, args ...string) {
	p.WriteString("." + name)
	for _, a := range args {
		fmt.Fprintf(p, ` "%s"`, strings.ReplaceAll(roff(a), `"`, `\(dq`))
	}
	p.WriteByte('\n')
}

// text writes a paragraph, which no macro can be hidden in.
func (p *manPage) text(s string) { p.WriteString(`\&` + roff(strings.ReplaceAll(s, "\n", " ")) + "\n") }

// roff escapes what roff would interpret.
func roff(s string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "`", `\(ga`, "'", `\(aq`, "^", `\(ha`, "~", `\(ti`).Replace(s)
}
