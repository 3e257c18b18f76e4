package generation

import (
	"bytes"
	"errors"
	"io/fs"
	"strings"

	"github.com/catalogd/catalogd/problem"
)

const (
	// library is the folder of the policy's library, which belongs to catalogd.
	library = "policy/catalogd"
	// notToEdit begins the first line of each of its files.
	notToEdit = "# Part of catalogd: do not edit."
)

// libraryProblems warns of each module of the policy's library that is not as the starter has it: it was changed
// by hand, or is of another version of catalogd. Its files don't say of which, so the two can't be told apart. A
// policy without the library has no problem.
func libraryProblems(policy, starter fs.FS) (problems problem.List) {
	if starter == nil {
		return nil
	}
	warn := func(name, what string) {
		problems.Warnf(problem.LibraryDiffers, problem.Position{File: name, Line: 1, Col: 1}, "",
			"%s; write rules of your own into policy/NAME.rego; `catalogd init --upgrade` restores the library", what)
	}
	shipped, err := fs.Glob(starter, library+"/*.rego")
	if err != nil {
		panic("generation: the pattern is fixed: " + err.Error())
	}
	has := map[string][]byte{}
	err = fs.WalkDir(policy, "policy", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".rego") {
			return err
		}
		data, err := fs.ReadFile(policy, name)
		if strings.HasPrefix(name, library+"/") || bytes.HasPrefix(data, []byte(notToEdit)) {
			has[name] = data
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // that there is no policy is reported by its build
		problems.Errorf(problem.LoadFailed, problem.Position{File: "policy"}, "", "the policy can't be read: %v", err)
	}
	for name, data := range has {
		want, err := fs.ReadFile(starter, name)
		switch {
		case err == nil && !bytes.Equal(data, want):
			warn(name, "the file is not as this catalogd has it: it was changed by hand, or is of another version")
		case err != nil && bytes.HasPrefix(data, []byte(notToEdit)):
			warn(name, "this catalogd has no such file: it is of another version")
		}
	}
	for _, name := range shipped {
		if _, ok := has[name]; !ok && len(has) > 0 {
			warn(name, "the file is missing: it was removed by hand, or the library is of another version")
		}
	}
	return problems
}
