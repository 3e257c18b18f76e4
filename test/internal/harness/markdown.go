package harness

import (
	"os"
	"strings"
	"testing"
)

// Block is a fenced block of a Markdown file. Kind is the word after its fence, Line that of its first line.
type Block struct {
	Kind string
	Line int
	Text string
}

// Blocks returns the fenced blocks of a Markdown file, in order.
func Blocks(t *testing.T, file string) (all []Block) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var open *Block
	for i, line := range strings.Split(string(data), "\n") {
		switch {
		case open == nil && strings.HasPrefix(line, "```"):
			open = &Block{Kind: strings.TrimPrefix(line, "```"), Line: i + 2}
		case open != nil && line == "```":
			all = append(all, *open)
			open = nil
		case open != nil:
			open.Text += line + "\n"
		}
	}
	if open != nil {
		t.Fatalf("%s:%d: the block does not end", file, open.Line)
	}
	return all
}
