package binding

import (
	"fmt"
	"strings"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/placeholder"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// maxElement is the longest command-line element on Linux, in bytes, without its final NUL.
const maxElement = 128<<10 - 1

// argv is the template of a command line. Each declared element becomes exactly one element of every command
// line: values are never split, joined or parsed again.
type argv []placeholder.Template

// commandLine is the place of argv's placeholders.
var commandLine = placeholder.Place{
	Whole: "a command line", Part: "one element of a command line", Instead: ", or stdin: \"json\"",
}

// newArgv parses the declared elements and checks their placeholders against the tool's arguments.
func newArgv(c *check, field string, elements []string, joined bool) argv {
	out := make(argv, len(elements))
	for i, text := range elements {
		at := fmt.Sprintf("%s.%d", field, i)
		if strings.ContainsRune(text, 0) {
			c.errorf(problem.BadBinding, at, "the element holds a NUL byte, which no command line can carry")
		}
		e := placeholder.Parse(text, c.declared)
		for _, p := range e {
			if p.Arg == "" {
				continue
			}
			for _, err := range placeholder.Check(c.tool.Args, p.Arg, commandLine) {
				c.errorf(problem.BadPlaceholder, at, "%v", err)
			}
			if len(e) > 1 && !joined {
				c.errorf(problem.BadPlaceholder, at, "{%s} stands inside the element %q; give it an element of its own, or set joined: true", p.Arg, text)
			}
		}
		out[i] = e
	}
	return out
}

// argument looks up a declared argument by name, and reports an unknown one with the nearest name.
func (c *check) argument(at, name string) (contract.Field, bool) {
	f, err := placeholder.Argument(c.tool.Args, name, "")
	if err != nil {
		c.errorf(problem.BadPlaceholder, at, "%v", err)
	}
	return f, err == nil
}

// used adds the arguments that the template uses.
func (a argv) used(into map[string]bool) {
	for _, e := range a {
		for _, p := range e {
			if p.Arg != "" {
				into[p.Arg] = true
			}
		}
	}
}

// expand fills in the arguments. It refuses values that no command line can carry, and those that the command
// would read as an option: an element that begins with a placeholder must not begin with a dash after
// expansion, unless it follows an element --.
func (a argv) expand(args contract.Args) ([]string, error) {
	out := make([]string, len(a))
	var refused violations
	options := true
	for i, e := range a {
		text, err := expand(e, args)
		if err != nil {
			return nil, err
		}
		first := e.First()
		switch {
		case strings.ContainsRune(text, 0):
			refused.add(first, "a string with a NUL byte", "a string without one, because it becomes part of a command line")
		case len(text) > maxElement:
			refused.add(first, fmt.Sprintf("%d bytes", len(text)), fmt.Sprintf("at most %d bytes, because it becomes one element of a command line", maxElement))
		case options && e[0].Arg != "" && strings.HasPrefix(text, "-"):
			refused.add(first, "a value that begins with -", "one that does not, because the command would take it for an option "+
				`(the author of the tool can allow it: with an element "--" before {`+first+"}, or with joined: true and --flag={"+first+"})")
		}
		if len(e) == 1 && e[0].Literal == "--" {
			options = false
		}
		out[i] = text
	}
	return out, refused.err()
}

// scalar returns one argument as text.
func scalar(args contract.Args, name string) (string, error) {
	return expand(placeholder.Template{{Arg: name}}, args)
}

func expand(t placeholder.Template, args contract.Args) (string, error) {
	text, err := t.Expand(args)
	if err != nil {
		return "", &registry.Error{Code: registry.Internal, Msg: err.Error()}
	}
	return text, nil
}
