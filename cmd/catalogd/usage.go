package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/registry"
)

// usage rewrites kong's error for an invalid command line: it names the arguments that the command takes, says
// what a word was probably meant for, and points to the help.
func usage(ctx context.Context, err error, root *kong.Node, args []string) string {
	text, help := err.Error(), "catalogd --help"
	var parse *kong.ParseError
	if errors.As(err, &parse) {
		if command := parse.Context.Selected(); command != nil {
			help = command.FullPath() + " --help"
			text = asWritten(ctx, root, args).explain(unknownWord(text, command), command)
		} else {
			text = strings.Replace(text, "unexpected argument", "unknown command", 1)
		}
	}
	return fmt.Sprintf("%s (see %s)", text, help)
}

// written is a command line, and what looks into its catalog.
type written struct {
	*line
	all []string
	e   *env
}

func asWritten(ctx context.Context, root *kong.Node, args []string) written {
	return written{
		line: readWords(root, append(slices.Clone(args), "")),
		all:  args,
		// What is wrong with the catalog is not what the error is about.
		e: &env{ctx: ctx, stdout: io.Discard, stderr: io.Discard, log: slog.New(slog.DiscardHandler)},
	}
}

// explain adds to the error for a command what its words were probably meant for.
func (w written) explain(text string, command *kong.Node) string {
	if strings.HasPrefix(text, `expected "<`) {
		return w.missing(command)
	}
	if len(command.Children) == 1 && command.Name == w.all[0] { // import, export, policy
		words := append([]string{command.FullPath(), command.Children[0].Name}, w.all[1:]...)
		return fmt.Sprintf("%s has one command: `%s`", command.Name, strings.Join(words, " "))
	}
	if word, ok := strings.CutPrefix(text, "unexpected argument "); ok {
		return text + w.asFlag(word, command)
	}
	if strings.HasPrefix(text, "unknown flag -C") && slices.ContainsFunc(command.Positional, func(p *kong.Positional) bool { return p.Name == "dir" }) {
		return fmt.Sprintf("unknown flag -C; the directory is an argument: `%s DIR`", command.FullPath())
	}
	return text
}

// incompleteError is the error for arguments that are missing, of a command that doesn't always need them.
type incompleteError string

func (e incompleteError) Error() string { return string(e) }

// hinted adds to the error of a command that a tool's name stands in the place of the branch.
func (w written) hinted(err error) error {
	var hint string
	var unknown *generation.UnknownBranchError
	var incomplete incompleteError
	switch {
	case errors.As(err, &unknown):
		if hint = w.meant(unknown.Name); hint != "" {
			hint = "; " + hint
		}
	case errors.As(err, &incomplete):
		hint = w.instead()
	}
	if hint == "" {
		return err
	}
	return fmt.Errorf("%w%s", err, hint)
}

// asFlag says with which flag a command takes a word that it doesn't take as an argument.
func (w written) asFlag(word string, command *kong.Node) string {
	has := func(name string) bool {
		return slices.ContainsFunc(command.Flags, func(f *kong.Flag) bool { return f.Name == name })
	}
	info, err := os.Stat(word)
	switch {
	case err == nil && info.IsDir() && has("dir"):
		return "; a directory is given by -C"
	case !has("branch"):
	case slices.Contains(w.branchNames(), word):
		return "; a branch is given by --branch " + word
	case len(w.showing(word)) > 0:
		return fmt.Sprintf("; it is a tool, and `catalogd matrix --tool %s` says who sees it", word)
	}
	return ""
}

// missing names the arguments of a command, and those that are not given.
func (w written) missing(command *kong.Node) string {
	var needed, missing []string
	for i, p := range command.Positional {
		if !p.Required {
			continue
		}
		needed = append(needed, strings.ToUpper(p.Name))
		if i >= len(w.args) {
			missing = append(missing, fmt.Sprintf("%s (%s)", strings.ToUpper(p.Name), strings.TrimSuffix(p.Help, ".")))
		}
	}
	return fmt.Sprintf("%s needs %s; missing: %s", strings.TrimPrefix(command.FullPath(), "catalogd "), strings.Join(needed, " and "), strings.Join(missing, ", ")) +
		w.instead()
}

// instead says what the one given word was meant for, where it stands in the place of the branch.
func (w written) instead() string {
	if len(w.args) != 1 || w.node.Positional[0].Name != "branch" {
		return ""
	}
	if hint := w.meant(w.args[0]); hint != "" {
		return "; " + hint
	}
	if _, err := os.Stat(w.args[0]); err == nil && w.node.Positional[1].Name == "file" {
		return fmt.Sprintf("; %s is a file, and the branch stands before it", w.args[0])
	}
	if names := w.branchNames(); len(names) > 0 && !slices.Contains(names, w.args[0]) {
		return "; " + (&generation.UnknownBranchError{Name: w.args[0], Nearest: registry.Nearest(w.args[0], names), Branches: names}).Error()
	}
	return ""
}

// meant says how a tool's name that stands in the place of a branch is written, "" for anything else.
func (w written) meant(word string) string {
	i := slices.IndexFunc(w.node.Positional, func(p *kong.Positional) bool { return p.Name == "branch" })
	branches := w.showing(word)
	if i < 0 || len(branches) == 0 {
		return ""
	}
	branch := branches[0]
	if slices.Contains(branches, "default") {
		branch = "default"
	}
	form := fmt.Sprintf("`%s %s ...`", w.node.FullPath(), branch)
	if next := i + 1; next < len(w.node.Positional) && strings.TrimSuffix(w.node.Positional[next].Name, "s") == "tool" {
		form = fmt.Sprintf("`%s %s %s`", w.node.FullPath(), branch, word)
	}
	return fmt.Sprintf("%s is a tool, and its branch stands before it: %s", word, form)
}

func (w written) branchNames() (names []string) {
	for _, c := range w.branches(w.e) {
		names = append(names, c.word)
	}
	return names
}

// showing returns the branches that show a tool of that name, none where there is a branch of that name.
func (w written) showing(tool string) (branches []string) {
	if len(w.flags["server"]) > 0 {
		return nil
	}
	for _, c := range w.look(w.e, func(_ context.Context, c *catalogd.Catalog) (found []candidate, err error) {
		for _, b := range c.Branches() {
			tools, err := c.Branch(b).Tools()
			if err != nil {
				return nil, err
			}
			if slices.ContainsFunc(tools, func(t registry.Tool) bool { return t.Name == tool }) {
				found = append(found, candidate{word: b})
			}
		}
		return found, nil
	}) {
		branches = append(branches, c.word)
	}
	return branches
}
