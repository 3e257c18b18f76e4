package loader

import (
	"maps"
	"path"
	"slices"
)

// Sources is what a Compiler reads of a snapshot, as plain data, for a Compiler in another process.
type Sources struct {
	Files []SourceFile
	// Refused are files that exist and could not be taken.
	Refused []string
	Tags    []string
}

// SourceFile is one CUE file.
type SourceFile struct {
	Name string
	// Place is the path that the positions of the file carry: another than Name where a symlink leads to it.
	Place string
	// Data are not to be changed.
	Data []byte
}

// Sources returns the snapshot's CUE files in order. The policy's files are not among them.
func (s *Snapshot) Sources() Sources {
	out := Sources{Refused: slices.Sorted(maps.Keys(s.refused)), Tags: s.Tags()}
	for _, name := range slices.Sorted(maps.Keys(s.memory.files)) {
		if path.Ext(name) == ".cue" {
			out.Files = append(out.Files, SourceFile{name, s.place(name), s.memory.files[name]})
		}
	}
	return out
}

// FromSources is a snapshot of those files alone. It compiles as the snapshot does that they came from, but for the
// digest, which covers the policy too.
func FromSources(src Sources) *Snapshot {
	files, origin, refused := map[string][]byte{}, map[string]string{}, map[string]bool{}
	for _, f := range src.Files {
		files[f.Name] = f.Data
		if f.Place != f.Name {
			origin[f.Name] = f.Place
		}
	}
	for _, name := range src.Refused {
		refused[name] = true
	}
	return newSnapshot(files, origin, refused, src.Tags)
}

// Step is a part of a compilation that may take long: one file that is parsed, or one package that is evaluated.
type Step struct {
	// Package is the package's directory; empty where a file is parsed.
	Package string
	// Files are the file, or those of the package's own directory, by the paths that positions carry.
	Files []string
}

func (c *Compiler) begin(s Step) (end func()) {
	if c.step == nil {
		return func() {}
	}
	return c.step(s)
}

// stepOf is the evaluation of a package.
func (s *sources) stepOf(id pkgID) Step {
	step := Step{Package: id.dir}
	own, _, _ := s.files(id)
	for _, f := range own {
		step.Files = append(step.Files, f.place)
	}
	return step
}
