package main

import (
	"io"
	"strings"

	"github.com/catalogd/catalogd/problem"
)

// printable writes text with what could affect a terminal escaped, but for line ends and tabs: results of tools, and
// what a daemon answers, are others' words. Each write must hold whole characters.
type printable struct{ io.Writer }

func (p printable) Write(text []byte) (int, error) {
	if _, err := io.WriteString(p.Writer, printableLines(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// unwrapped returns what a printable writes to, for the escape sequences and the logs of catalogd itself.
func unwrapped(w io.Writer) io.Writer {
	if p, ok := w.(printable); ok {
		return p.Writer
	}
	return w
}

// printableLines is problem.Printable for a text of several lines.
func printableLines(text string) string {
	if problem.Printable(text) == text {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		content, ended := strings.CutSuffix(line, "\n")
		for i, cell := range strings.Split(content, "\t") {
			if i > 0 {
				b.WriteByte('\t')
			}
			b.WriteString(problem.Printable(cell))
		}
		if ended {
			b.WriteByte('\n')
		}
	}
	return b.String()
}
