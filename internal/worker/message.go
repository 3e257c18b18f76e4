package worker

import (
	"crypto/sha256"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// digest identifies the content of a file, or an encoded declaration.
type digest = [sha256.Size]byte

// compileSetup is the first message to a child that compiles.
type compileSetup struct {
	Schema   []byte
	MaxTools int
	// Steps is as in loader.Config.
	Steps int
	// Memory and Keep are bytes, as in Config.
	Memory, Keep int64
}

// hello is a child's answer to its first message.
type hello struct {
	// Sandbox names what confines the child.
	Sandbox []string
}

// request asks for the compilation of a snapshot's sources.
type request struct {
	Files         []requestFile
	Refused, Tags []string
	// Contents are those of Files that the request before did not have.
	Contents [][]byte
}

// requestFile is a file of a request. Sum is the digest of its content.
type requestFile struct {
	Name, Place string
	Sum         digest
}

// stepBegan reports that a step has begun; stepEnded, with the same ID, that it has ended.
type stepBegan struct {
	ID      uint64
	Package string
	Files   []string
}

type stepEnded struct{ ID uint64 }

// memory reports how many bytes the child uses.
type memory struct{ Bytes int64 }

// toolsRead reports how many tools of changed packages are read, of how many that are known.
type toolsRead struct{ Done, Of int64 }

// part is a part of an answer: problems, and declarations that are new or changed since the answer before.
type part struct {
	Problems problem.List
	Tools    []registry.Tool
	Servers  []registry.Server
	Branches []registry.Branch
	// Packages are all those of the answer, changed or not, without their sources, which the parent has.
	Packages []registry.Package
}

// done ends an answer. A declaration that is neither in its parts nor removed is unchanged.
type done struct {
	// NoBuild says that there is no build, and that all declarations are unchanged.
	NoBuild bool
	// Tools, Servers and Branches are the names of the removed declarations.
	Tools, Servers, Branches []string
}

// checkSetup is the first message to a child that checks calls.
type checkSetup struct {
	Schema []byte
	// Memory is in bytes, as in CheckerConfig.
	Memory int64
}

// packageSources is a package that the child doesn't have, with the contents of its files.
type packageSources struct {
	Package  registry.Package
	Contents [][]byte
}

// forgetPackages names the packages that the child need not keep, by digest.
type forgetPackages struct{ Digests []string }

// checkRequest asks for the check of one call.
type checkRequest struct {
	Contract contractKey
	Args     []byte
}

// empty is a message whose kind says it all.
type empty struct{}

// checkResult answers a checkRequest. Failed says why nothing was decided; it is empty where something was.
type checkResult struct {
	Filled     []byte
	Violations []contract.Violation
	Failed     string
}

// programSetup is the first message to a child that runs jq programs. Memory is in bytes, as in
// ProgramRunnerConfig.
type programSetup struct{ Memory int64 }

// programRequest asks for one run of a program, as jq.Runner's Run does.
type programRequest struct {
	Source string
	Input  []byte
	Limit  int
}

// programResult answers a programRequest. One field at most is set; none where there was no output.
type programResult struct {
	Output   []byte
	TooLarge bool
	Failed   string
}
