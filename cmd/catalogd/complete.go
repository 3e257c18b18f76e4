package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/catalogd/catalogd/contract/dialect"
	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/problem"
)

// completeTime bounds how long a shell waits for candidates: a catalog that takes longer to compile gets none. The
// variable sets another bound.
const (
	completeTime         = 5 * time.Second
	completeTimeVariable = "CATALOGD_COMPLETION_TIMEOUT"
)

// completeCmd answers the scripts of `catalogd completion`. It starts no server and changes nothing.
type completeCmd struct {
	Shell string   `arg:"" enum:"bash,zsh,fish" help:"Which shell asks."`
	Words []string `arg:"" optional:"" passthrough:"" help:"Of bash the line up to the cursor; else the words after the program's name, the last of which is completed."`
}

// Run prints a first line that says what is completed (words, files or directories), then one candidate a line, with its
// description after a tab.
func (c *completeCmd) Run(e *env) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if c.Shell == "bash" && len(words) == 1 {
		words = shellWords(words[0])[1:]
	}
	if len(words) == 0 {
		words = []string{""}
	}
	line := readWords(newParser(new(cli), io.Discard, io.Discard, func(int) {}).Model.Node, words)
	kind, found := line.candidates(e)
	var b strings.Builder
	fmt.Fprintln(&b, kind)
	for _, f := range found {
		if !strings.HasPrefix(f.word, line.current) {
			continue
		}
		word := line.before + f.word
		if c.Shell == "bash" { // which replaces only what follows the last of these
			word = word[strings.LastIndexAny(line.before+line.current, "=:")+1:]
		}
		b.WriteString(word)
		if f.about != "" {
			b.WriteString("\t" + problem.Printable(strings.ReplaceAll(firstLine(f.about), "\t", " ")))
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(e.stdout, b.String())
	return err
}

// candidate is one word that may stand at the cursor.
type candidate struct{ word, about string }

// What is completed.
const (
	completeWords       = "words"
	completeFiles       = "files"
	completeDirectories = "directories"
)

// line is a command line up to the cursor.
type line struct {
	node  *kong.Node
	flags map[string][]string // what was given, by the long name
	args  []string            // positional arguments
	// value is the flag or argument whose value is completed; nil for a command or the name of a flag.
	value *kong.Value
	// before is the part of the last word that stays, "--dialect=", and current what is completed.
	before, current string
	literal         bool // "--" was given: no flags follow
}

// readWords reads a command line, the last word of which is completed.
func readWords(root *kong.Node, words []string) *line {
	l := &line{node: root, flags: map[string][]string{}, current: words[len(words)-1]}
	for _, w := range words[:len(words)-1] {
		switch {
		case l.value != nil:
			l.flags[l.value.Name], l.value = append(l.flags[l.value.Name], w), nil
		case w == "--" && !l.literal:
			l.literal = true
		case strings.HasPrefix(w, "-") && w != "-" && !l.literal:
			name, value, given := strings.Cut(w, "=")
			switch flag, attached := l.flag(name); {
			case flag == nil:
			case given || attached != "":
				l.flags[flag.Name] = append(l.flags[flag.Name], value+attached)
			case flag.IsBool() || flag.IsCounter():
				l.flags[flag.Name] = append(l.flags[flag.Name], "true")
			default:
				l.value = flag.Value
			}
		default:
			if child := childOf(l.node, w); child != nil && len(l.args) == 0 {
				l.node = child
			} else {
				l.args = append(l.args, w)
			}
		}
	}
	switch {
	case l.value != nil || l.literal && l.position() == nil:
	case strings.HasPrefix(l.current, "-") && !l.literal:
		if name, value, given := strings.Cut(l.current, "="); given {
			if flag, _ := l.flag(name); flag != nil {
				l.value, l.before, l.current = flag.Value, name+"=", value
			}
		}
	default:
		l.value = l.position()
	}
	return l
}

// flag returns the flag of a word, and the value that follows a short name at once.
func (l *line) flag(word string) (flag *kong.Flag, attached string) {
	for _, group := range l.node.AllFlags(true) {
		for _, f := range group {
			switch long := strings.HasPrefix(word, "--"); {
			case long && f.Name == word[2:]:
				return f, ""
			case !long && f.Short != 0 && strings.HasPrefix(word[1:], string(f.Short)):
				return f, word[1+len(string(f.Short)):]
			}
		}
	}
	return nil, ""
}

// position returns the positional argument that stands next; nil if there is none.
func (l *line) position() *kong.Value {
	all := l.node.Positional
	if len(l.args) < len(all) {
		return all[len(l.args)]
	}
	if n := len(all); n > 0 && all[n-1].IsCumulative() {
		return all[n-1]
	}
	return nil
}

func childOf(node *kong.Node, name string) *kong.Node {
	for _, child := range node.Children {
		if child.Name == name && !child.Hidden {
			return child
		}
	}
	return nil
}

// candidates returns what may stand at the cursor. Which branches and tools there are is asked where the command would
// ask: the catalog's directory, or the daemon of --server.
func (l *line) candidates(e *env) (kind string, found []candidate) {
	switch {
	case l.value == nil && strings.HasPrefix(l.current, "-") && !l.literal:
		return completeWords, l.flagNames()
	case l.value == nil:
		return completeWords, commands(l.node)
	}
	switch name := l.value.Name; {
	case name == "format" && l.node.Target.IsValid():
		return completeWords, plain(formatsOf(l.node)...)
	case l.value.Enum != "":
		return completeWords, plain(l.value.EnumSlice()...)
	case name == "dialect":
		return completeWords, plain(dialect.All()...)
	case name == "point":
		return completeWords, plain(decision.Points()...)
	case name == "strategy":
		return completeWords, plain("concurrent", "sequential")
	case name == "on-error":
		return completeWords, plain("continue", "stop")
	case name == "command":
		node := l.node.Parent
		for _, word := range l.args {
			if node = childOf(node, word); node == nil {
				return completeWords, nil
			}
		}
		return completeWords, commands(node)
	case name == "branch":
		return completeWords, l.branches(e)
	case name == "tool" || name == "tools":
		return completeWords, l.tools(e)
	case name == "file" || name == "config" || l.value.Flag != nil && l.value.Flag.PlaceHolder == "FILE":
		return completeFiles, nil
	case name == "dir" || name == "old" || name == "new" || l.value.Flag != nil && l.value.Flag.PlaceHolder == "DIR":
		return completeDirectories, nil
	default:
		return completeWords, nil
	}
}

func plain[T ~string](words ...T) (found []candidate) {
	for _, w := range words {
		found = append(found, candidate{string(w), ""})
	}
	return found
}

func commands(node *kong.Node) (found []candidate) {
	for _, child := range node.Children {
		if !child.Hidden {
			found = append(found, candidate{child.Name, child.Help})
		}
	}
	return found
}

// flagNames returns the flags that may still be given.
func (l *line) flagNames() (found []candidate) {
	for _, group := range l.node.AllFlags(true) {
		for _, f := range group {
			if len(l.flags[f.Name]) == 0 || f.IsCumulative() {
				found = append(found, candidate{"--" + f.Name, f.Help})
			}
		}
	}
	return found
}

// dir returns the catalog's directory that the command line names.
func (l *line) dir() string {
	var dir string
	if given := l.flags["dir"]; len(given) > 0 {
		dir = given[len(given)-1]
	}
	if i := slices.IndexFunc(l.node.Positional, func(v *kong.Value) bool { return v.Name == "dir" }); i >= 0 && i < len(l.args) {
		dir = l.args[i]
	}
	if rest, ok := strings.CutPrefix(dir, "~/"); ok { // shells hand over the word as it was typed
		if home, err := os.UserHomeDir(); err == nil {
			dir = filepath.Join(home, rest)
		}
	}
	if dir == "" {
		if found, err := findRoot(); err == nil {
			dir = found
		}
	}
	return cmp.Or(dir, ".")
}
