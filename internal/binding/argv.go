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

// argv is the template of a command line. Each declared element becomes one element of a command line, or what
// its marks say (docs/bindings.md): values are never split, joined or parsed again.
type argv []element

// commandLine is the place of argv's placeholders.
var commandLine = placeholder.Place{
	Whole: "a command line", Part: "one element of a command line", Instead: ", {name*} for a list, or stdin: \"json\"",
	Optional: "{NAME?}, which leaves the element out",
}

// newArgv parses the declared elements and checks their placeholders against the tool's arguments.
func newArgv(c *check, field string, elements []string, joined bool) argv {
	out := make(argv, len(elements))
	for i, text := range elements {
		at := fmt.Sprintf("%s.%d", field, i)
		if strings.ContainsRune(text, 0) {
			c.errorf(problem.BadBinding, at, "the element holds a NUL byte, which no command line can carry")
		}
		out[i] = parseElement(text, c.declared)
		out[i].check(c, at, text, joined)
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
			if p.arg != "" {
				into[p.arg] = true
			}
		}
	}
}

// expand fills in the arguments, and returns what each element became. It refuses values that no command line
// can carry, and those that the command would read as an option: what begins with a placeholder must not begin
// with a dash after expansion, unless it follows an element --.
func (a argv) expand(args contract.Args) ([][]string, error) {
	out := make([][]string, len(a))
	var refused violations
	options := true
	for i, e := range a {
		produced, err := e.expand(args, &refused)
		if err != nil {
			return nil, err
		}
		for _, p := range produced {
			switch {
			case strings.ContainsRune(p.text, 0):
				refused.at(p.pointer, "a string with a NUL byte", "a string without one, because it becomes part of a command line")
			case len(p.text) > maxElement:
				refused.at(p.pointer, fmt.Sprintf("%d bytes", len(p.text)), fmt.Sprintf("at most %d bytes, because it becomes one element of a command line", maxElement))
			case options && p.begins && strings.HasPrefix(p.text, "-"):
				refused.at(p.pointer, "a value that begins with -", "one that does not, because the command would take it for an option "+
					`(the author of the tool can allow it: with an element "--" before {`+p.arg+"}, or with joined: true and --flag={"+p.arg+"})")
			}
			out[i] = append(out[i], p.text)
		}
		if len(e) == 1 && e[0].literal == "--" {
			options = false
		}
	}
	return out, refused.err()
}

// scalar returns one argument as text.
func scalar(args contract.Args, name string) (string, error) {
	text, err := placeholder.Template{{Arg: name}}.Expand(args)
	if err != nil {
		return "", &registry.Error{Code: registry.Internal, Msg: err.Error()}
	}
	return text, nil
}
