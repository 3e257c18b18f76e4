package worker

import (
	"crypto/sha256"

	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

type digest = [sha256.Size]byte

// setup is the first message to a child.
type setup struct {
	Schema   []byte
	MaxTools int
	// Steps is as in loader.Config.
	Steps int
	// Memory and Keep are bytes, as in Config.
	Memory, Keep int64
}

// hello is the child's answer to it.
type hello struct {
	// Sandbox names what keeps the child in.
	Sandbox []string
}

// request asks for the compilation of a snapshot's sources.
type request struct {
	Files         []file
	Refused, Tags []string
	// Contents are what Files name and the child doesn't have from the request before.
	Contents [][]byte
}

// file is a file of a request; Sum names its content.
type file struct {
	Name, Place string
	Sum         digest
}

// begin tells that a step begins; end, with the same ID, that it has ended.
type begin struct {
	ID      uint64
	Package string
	Files   []string
}

type end struct{ ID uint64 }

// memory tells how many bytes the child uses.
type memory struct{ Bytes int64 }

// part is a part of an answer: problems, and declarations that are new or not what they were in the answer before.
type part struct {
	Problems problem.List
	Tools    []registry.Tool
	Servers  []registry.Server
	Branches []registry.Branch
	// Packages are all those of the answer, changed or not, without their sources: the parent has those.
	Packages []registry.Package
}

// done ends an answer. What is neither in its parts nor removed is as it was in the answer before.
type done struct {
	// NoBuild tells that there is no build at all, and nothing changed.
	NoBuild                  bool
	Tools, Servers, Branches []string // the names that are gone
}
