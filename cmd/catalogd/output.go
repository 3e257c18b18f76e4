package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"golang.org/x/term"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/internal/daemon"
	"github.com/catalogd/catalogd/problem"
)

// printJSON writes v as indented JSON, without characters that could affect a terminal.
func (e *env) printJSON(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := e.stdout.Write(problem.PrintableJSON(b.Bytes()))
	return err
}

func (e *env) println(text string) error {
	_, err := fmt.Fprintln(e.stdout, text)
	return err
}

// table writes rows in aligned columns; the first row is the heading. Text from a catalog can neither start a
// row of its own nor affect the terminal.
func (e *env) table(rows [][]string) error {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			if i > 0 {
				fmt.Fprint(w, "\t")
			}
			fmt.Fprint(w, problem.Printable(strings.ReplaceAll(cell, "\n", " ")))
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(b.String()) {
		// An empty last cell leaves the padding of the previous one.
		if _, err := fmt.Fprintln(e.stdout, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// problems writes a list in the form of `check`: one line for each problem, or JSON.
func (e *env) problems(l problem.List) error {
	errs, warnings := l.Count()
	if e.json {
		if l == nil {
			l = problem.List{}
		}
		return e.printJSON(struct {
			Problems problem.List `json:"problems"`
			Errors   int          `json:"errors"`
			Warnings int          `json:"warnings"`
		}{l, errs, warnings})
	}
	colour := coloured(e.stdout)
	for _, p := range l {
		p.Position, p.Also = e.seen(p.Position), slices.Clone(p.Also)
		for i := range p.Also {
			p.Also[i] = e.seen(p.Also[i])
		}
		line, w := p.String(), e.stdout
		if colour {
			line, w = paint(p, printableLines(line)), unwrapped(w)
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
		if p.Paste == "" {
			continue
		}
		if err := e.println(strings.TrimSuffix(p.Paste, "\n")); err != nil {
			return err
		}
	}
	return nil
}

// paint makes the position of a problem bold and its code red, or yellow for a warning.
func paint(p problem.Problem, line string) string {
	const bold, red, yellow, reset = "\x1b[1m", "\x1b[31m", "\x1b[33m", "\x1b[0m"
	place, code := p.Position.String(), string(p.Code)
	rest, ok := strings.CutPrefix(line, place+": "+code)
	if !ok {
		return line
	}
	colour := red
	if p.Severity == problem.Warning {
		colour = yellow
	}
	return bold + place + ": " + colour + code + reset + rest
}

// coloured reports whether w is a terminal and colour is not disabled (NO_COLOR, no-color.org).
func coloured(w io.Writer) bool { return isTerminal(w) && os.Getenv("NO_COLOR") == "" }

// descriptor is a file, or a screen on it.
type descriptor interface{ Fd() uintptr }

func isTerminal(w io.Writer) bool {
	f, ok := unwrapped(w).(descriptor)
	return ok && term.IsTerminal(int(f.Fd()))
}

// columns returns how many columns a line for people may take: COLUMNS if that is a positive number, or else
// what w has if it is a terminal. 0 means any number: a pipe and a file get whole lines.
func columns(w io.Writer) int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if f, ok := unwrapped(w).(descriptor); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil {
			return n
		}
	}
	return 0
}

// fail prints why a command could not run, and returns its exit code: 1 for an invalid catalog, 2 for any
// other error.
func (e *env) fail(err error) int {
	if e.ctx.Err() != nil {
		var remote *brokenOffError
		if !errors.As(err, &remote) {
			err = errors.New("interrupted")
		}
		fmt.Fprintf(e.stderr, "catalogd: %v\n", err)
		return 2
	}
	var refused *daemon.RefusedError
	if errors.As(err, &refused) {
		if e.document {
			e.stdout, e.json = e.stderr, false
		}
		if perr := e.problems(refused.Problems); perr != nil {
			fmt.Fprintf(e.stderr, "catalogd: %v\n", perr)
			return 2
		}
		n, _ := refused.Problems.Count()
		fmt.Fprintf(e.stderr, "catalogd: the catalog has %s and can't be served\n", count(n, "error"))
		return 1
	}
	fmt.Fprintf(e.stderr, "catalogd: %v\n", err)
	return 2
}

// count formats a number with its noun: "1 error", "2 errors".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// opened opens the current files of a catalog for a command that runs once; it ignores the last adopted
// generation.
func (e *env) opened(f catalogFlags, dir string) (*catalogd.Catalog, error) {
	cfg, err := f.config(e, dir)
	if err != nil {
		return nil, err
	}
	return e.open(cfg)
}

func (e *env) open(cfg catalogd.Config) (*catalogd.Catalog, error) {
	cfg.Once = true
	defer e.progress("reading the files")()
	return catalogd.New(e.ctx, cfg)
}
