package diff

import (
	"github.com/catalogd/catalogd/contract/compat"
	"github.com/catalogd/catalogd/decision/lint"
	"github.com/catalogd/catalogd/internal/generation"
)

// Class is the effect of a change on what is granted. The list is closed.
type Class string

const (
	// Widening: something is newly allowed, granted or exempt from a check; the change may also narrow
	// something else.
	Widening Class = "widening"
	// Unclassified: the effect of the change is unknown. It counts as widening.
	Unclassified Class = "unclassified"
	// Narrowing: something is no longer allowed or granted, or is checked more.
	Narrowing Class = "narrowing"
	// Neutral: no grant depends on it.
	Neutral Class = "neutral"
)

// classes are all classes, the most severe first.
var classes = []Class{Widening, Unclassified, Narrowing, Neutral}

// Widens reports whether the class counts as widening.
func (c Class) Widens() bool { return c == Widening || c == Unclassified }

// with returns the class of two changes together.
func (c Class) with(other Class) Class {
	for _, worst := range classes {
		if c == worst || other == worst {
			return worst
		}
	}
	return Neutral
}

// effectClass returns the class that follows from a change's form; Unclassified if none does.
func effectClass(e lint.Effect) Class {
	switch e {
	case lint.Widening:
		return Widening
	case lint.Narrowing:
		return Narrowing
	case lint.Neutral:
		return Neutral
	}
	return Unclassified
}

// argumentsClass returns the class of a change in the accepted arguments.
func argumentsClass(v compat.Verdict) Class {
	switch v {
	case compat.Identical:
		return Neutral
	case compat.Narrowed:
		return Narrowing
	case compat.Undecided:
		return Unclassified
	}
	return Widening
}

// reach orders the kinds of access of a principal to a tool.
var reach = map[generation.Access]int{generation.Hidden: 0, generation.Refused: 1, generation.Approval: 2, generation.Depends: 2, generation.Callable: 3}

// accessClass returns the class of a change of access.
func accessClass(from, to generation.Access) Class {
	switch {
	case reach[to] > reach[from]:
		return Widening
	case reach[to] < reach[from]:
		return Narrowing
	}
	return Unclassified // some calls may newly be denied or need an approval, and others the reverse
}

// limitClass returns the class of a changed limit, where 0 means none.
func limitClass(from, to float64) Class {
	switch {
	case from == to:
		return Neutral
	case to == 0, from != 0 && to > from:
		return Widening
	}
	return Narrowing
}
