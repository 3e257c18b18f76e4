package diff

import (
	"strings"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/contract/compat"
	"github.com/catalogd/catalogd/registry"
)

// narrowings sets the classes of what changed branches say of single tools: by the arguments that each
// narrowing lets through, and by the order of the rules for keys. Names and texts are neutral.
func narrowings(changed []Declared, from, to []registry.Branch) {
	old, now := map[string]registry.Branch{}, map[string]registry.Branch{}
	for _, b := range from {
		old[b.Name] = b
	}
	for _, b := range to {
		now[b.Name] = b
	}
	for i, d := range changed {
		class := Neutral
		for j, f := range d.Fields {
			path := strings.SplitN(f.Field, ".", 4)
			switch {
			case path[0] == "strictness" && len(path) == 2:
				d.Fields[j].Class = strictnessClass(contract.Strictness(f.Old), contract.Strictness(f.New))
			case path[0] == "narrow" && len(path) > 2 && path[2] == "args":
				d.Fields[j].Class = argsClass(old[d.Name].Narrow[path[1]].Args, now[d.Name].Narrow[path[1]].Args)
				d.Fields[j].Pos = now[d.Name].At(f.Field)
			}
			class = class.with(d.Fields[j].Class)
		}
		changed[i].Class = class
	}
}

// argsClass compares the arguments that two narrowings let through; nil lets through all.
func argsClass(from, to *contract.Narrowing) Class {
	c := compat.CompareResults(contract.Spec{Schema: from.Final()}, contract.Spec{Schema: to.Final()})
	return argumentsClass(c.Verdict)
}

func strictnessClass(from, to contract.Strictness) Class {
	switch {
	case from == "" || to.Stricter(from):
		return Narrowing
	case to == "" || from.Stricter(to):
		return Widening
	}
	return Neutral
}
