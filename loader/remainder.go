package loader

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"cuelang.org/go/cue"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/derive"
	"github.com/catalogd/catalogd/registry"
)

// Constraints of a contract that JSON Schema can't express are checked by CUE at the call, in another process
// and maybe long after the build. So the build carries the sources of such a package, with the directories
// above it and its imports, and the value is rebuilt from them by the code that built it first.

// ship adds to the build the sources of each package in which a contract has a remainder.
func (s *sources) ship(b *registry.Build, snap *Snapshot) {
	digests := map[string]string{}
	for _, r := range b.Remainders() {
		digests[r.Package] = r.Digest
	}
	if len(digests) == 0 {
		return
	}
	b.Sources = map[string][]byte{}
	for _, dir := range slices.Sorted(maps.Keys(digests)) {
		files := map[string]registry.PackageFile{}
		add := func(name, place string, data []byte) {
			sum := registry.Sum(data)
			b.Sources[sum] = data
			files[name] = registry.PackageFile{Name: name, Place: place, Sum: sum}
		}
		for _, f := range s.closure(pkgID{dir, rootName}) {
			if f.name != schemaPath {
				add(f.name, f.place, f.data)
			}
		}
		if data, ok := snap.memory.files[modulePath]; ok {
			add(modulePath, snap.place(modulePath), data)
		}
		p := registry.Package{Dir: dir, Digest: digests[dir], Tags: snap.Tags()}
		for _, name := range slices.Sorted(maps.Keys(files)) {
			p.Files = append(p.Files, files[name])
		}
		b.Packages = append(b.Packages, p)
	}
}

// Check checks one contract's remainder against the arguments of a call, as derive.Remainder's Check does.
type Check func(args json.RawMessage) (filled json.RawMessage, found []contract.Violation, err error)

const (
	// extraPlace is the name of the added file, which no file of a catalog can have.
	extraPlace = "#remainder"
	// extraName is the definition in the added file.
	extraName = "#remainderOfACall"
)

// contractPath parses the path of a contract: that of a tool's args or result, with the tool's name, or that
// of a result that a server's discover declares (resultPath).
func contractPath(at string) (path cue.Path, tool string, ok bool) {
	if p := strings.Split(at, "."); len(p) == 3 && p[0] == toolsField && namePattern.MatchString(p[1]) && (p[2] == "args" || p[2] == "result") {
		return cue.MakePath(cue.Str(p[0]), cue.Str(p[1]), cue.Str(p[2])), p[1], true
	}
	path = cue.ParsePath(at)
	var names []string
	for _, s := range path.Selectors() {
		if s.Type() == cue.StringLabel {
			names = append(names, s.Unquoted())
		}
	}
	return path, "", path.Err() == nil && len(names) == 6 && resultPath(names[1], names[4]) == at
}

// Remainder builds the value at a Remainder's path from the sources of its package, with only the one tool
// where the files allow tools to be separated. Its time is bounded only as the compilation of the package
// was. open means that a call may have further top-level keys. Neither Remainder nor the Check that it
// returns is safe for concurrent use.
func (c *Compiler) Remainder(p registry.Package, content func(sum string) ([]byte, bool), at string, open bool) (Check, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken != nil {
		return nil, c.broken
	}
	contract, tool, ok := contractPath(at)
	if !ok {
		return nil, fmt.Errorf("%q is not a path of a contract", at)
	}
	from := Sources{Tags: p.Tags}
	for _, f := range p.Files {
		data, ok := content(f.Sum)
		if !ok {
			return nil, fmt.Errorf("the content of %s is missing", f.Name)
		}
		from.Files = append(from.Files, SourceFile{f.Name, f.Place, data})
	}
	src, problems := c.readAll(FromSources(from))
	if err := problems.Err(); problems.HasErrors() {
		return nil, err
	}
	id := pkgID{path.Clean(p.Dir), rootName}
	if _, _, ok := src.files(id); !ok {
		return nil, fmt.Errorf("the package %s has no files", p.Dir)
	}
	value := contract.String()
	if open {
		value = "{" + value + ", ...}"
	}
	b := &builder{
		sources: src, tags: p.Tags, tool: tool,
		// a separate definition, so that CUE closes the value
		extra: fmt.Sprintf("package %s\n\n%s: %s\n", rootName, extraName, value),
	}
	v, ok := b.value(id)
	if err := b.problems.Err(); !ok || err != nil {
		return nil, fmt.Errorf("the package %s can't be built again: %w", p.Dir, err)
	}
	if !v.LookupPath(contract).Exists() {
		return nil, fmt.Errorf("the package %s has no %s", p.Dir, at)
	}
	r, err := derive.NewRemainder(v, extraName)
	if err != nil {
		return nil, err
	}
	return r.Check, nil
}
