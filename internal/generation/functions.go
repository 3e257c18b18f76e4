package generation

import (
	"slices"
	"strconv"
	"strings"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Functions are the Go functions that bindings may name, by name.
type Functions struct {
	By map[string]*registry.Function
	// Elsewhere says that another program embeds the catalog: a function that is not in By is a warning, and its tool
	// is hidden. Otherwise it is an error.
	Elsewhere bool
}

// absent is the reason for hiding a tool whose function is not in the program.
const absent = "its Go function is not in this program"

// complete returns the tools with what their functions say: args, result, title.
// What a processor makes of a tool's result is not compared with what its function returns.
func (f Functions) complete(
	tools []registry.Tool, processors []registry.Processor,
) ([]registry.Tool, problem.List) {
	var problems problem.List
	copied := false
	for i, t := range tools {
		if t.Binding.Func == "" {
			continue
		}
		if !copied {
			tools, copied = slices.Clone(tools), true // a build is not modified
		}
		known, ok := f.By[t.Binding.Func]
		if ok {
			var more problem.List
			tools[i], more = known.Complete(t)
			problems = append(problems, more...)
			if _, after := registry.BindProcessors(processors, t.Name); t.Post == "" && len(after) == 0 {
				problems = append(problems, known.CheckResult(t)...)
			}
			continue
		}
		if t.Args.Schema == nil { // unknown, so that the tool is only named
			tools[i].Args = contract.Spec{Schema: []byte(`{"type":"object"}`), Strictness: contract.Open}
		}
		severity, says := problems.Errorf, f.unknown(t.Binding.Func)
		if f.Elsewhere {
			severity = problems.Warnf
		}
		severity(problem.UnknownFunction, t.At("binding.func"), "tools."+t.Name+".binding.func", "%s", says)
	}
	return tools, problems
}

// unknown returns the message about a function that the program does not have.
func (f Functions) unknown(name string) string {
	if f.Elsewhere {
		return "the Go function " + strconv.Quote(name) + " is in the program that embeds the catalog and not in " +
			"this one, so its tool is hidden here and its arguments are not checked; describe the program's functions with --functions FILE"
	}
	says := "this program has no Go function " + strconv.Quote(name)
	names := make([]string, 0, len(f.By))
	for known := range f.By {
		names = append(names, known)
	}
	slices.Sort(names)
	switch near := registry.Nearest(name, names); {
	case len(near) > 0:
		return says + "; did you mean " + strconv.Quote(near[0]) + "?"
	case len(names) > 0:
		return says + "; it has " + strings.Join(names, ", ") +
			": make it with registry.Func and put it into catalogd.Config.Functions"
	}
	return says + "; make it with registry.Func and put it into catalogd.Config.Functions of the program " +
		"that serves the catalog"
}
