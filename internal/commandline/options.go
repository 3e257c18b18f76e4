package commandline

import (
	"maps"
	"regexp"
	"strings"
)

// options maps each option that may safely precede what a program runs to the pattern of its value; nil for a
// switch, which takes no value. None of them brings code or names another source of code.
type options map[string]*regexp.Regexp

// fixed matches any value without a placeholder.
var fixed = regexp.MustCompile(``)

// switches returns options without a value, from names separated by white space.
func switches(names string) options {
	o := make(options)
	for _, n := range strings.Fields(names) {
		o[n] = nil
	}
	return o
}

// and returns o with further options, whose values match pattern.
func (o options) and(pattern *regexp.Regexp, names string) options {
	all := maps.Clone(o)
	for _, n := range strings.Fields(names) {
		all[n] = pattern
	}
	return all
}

// with returns o with more options.
func (o options) with(more options) options {
	all := maps.Clone(o)
	maps.Copy(all, more)
	return all
}

// grammar is how a program reads its options.
type grammar struct {
	options options
	// clusters: -it is -i and -t.
	clusters bool
	// ends: -- ends the options.
	ends bool
}

// line is a parsed command line.
type line struct {
	// values holds the values of each option that was given, "" for a switch.
	values map[string][]string
	// rest begins with the first word that is not an option.
	rest []string
	// ended: -- precedes rest.
	ended bool
	// unknown is the first element that the grammar does not cover; empty if it covers all.
	unknown string
}

func (g grammar) read(args []string) line {
	l := line{values: make(map[string][]string)}
	for len(args) > 0 {
		arg := args[0]
		if g.ends && arg == "--" {
			l.rest, l.ended = args[1:], true
			return l
		}
		if !strings.HasPrefix(arg, "-") {
			break
		}
		taken := g.option(l.values, args)
		if taken == 0 {
			l.unknown = arg
			return l
		}
		args = args[taken:]
	}
	l.rest = args
	return l
}

// option reads the option at the beginning of args and returns how many elements it takes; 0 if the grammar
// does not cover it.
func (g grammar) option(values map[string][]string, args []string) int {
	option, value, joined := strings.Cut(args[0], "=")
	pattern, ok := g.options[option]
	switch {
	case !ok && g.clusters && g.cluster(args[0]):
		return 1
	case !ok, pattern == nil && joined:
		return 0
	case pattern == nil:
		values[option] = append(values[option], "")
		return 1
	case joined && !strings.HasPrefix(option, "--"):
		return 0 // -p=x is x to some programs, and =x to others
	}
	taken := 1
	if !joined {
		if len(args) < 2 || strings.HasPrefix(args[1], "-") {
			return 0
		}
		value, taken = args[1], 2
	}
	if placeholder(value) || !pattern.MatchString(value) {
		return 0
	}
	values[option] = append(values[option], value)
	return taken
}

// cluster reports whether arg joins several one-letter switches, such as -it.
func (g grammar) cluster(arg string) bool {
	letters := strings.TrimPrefix(arg, "-")
	if letters == "" || strings.HasPrefix(letters, "-") {
		return false
	}
	for _, letter := range letters {
		if pattern, ok := g.options["-"+string(letter)]; !ok || pattern != nil {
			return false
		}
	}
	return true
}

// all returns the values of an option under all of its names.
func (l line) all(names ...string) (values []string) {
	for _, n := range names {
		values = append(values, l.values[n]...)
	}
	return values
}

// has reports whether a switch was given.
func (l line) has(name string) bool { return len(l.values[name]) > 0 }
