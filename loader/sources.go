package loader

import (
	"maps"
	"path"
	"slices"
)

// Sources is what a Compiler reads of a snapshot, as plain data, for a Compiler in another process or at a
// later time.
type Sources struct {
	Files []SourceFile
	// Refused are files that exist but could not be read.
	Refused []string
	Tags    []string
}

// SourceFile is one file.
type SourceFile struct {
	Name string
	// Place is the path used in positions of the file. It differs from Name if Name is reached through a
	// symlink.
	Place string
	// Data must not be modified.
	Data []byte
}

// Sources returns the snapshot's CUE files in order, without the policy's files.
func (s *Snapshot) Sources() Sources {
	all := s.All()
	all.Files = slices.DeleteFunc(all.Files, func(f SourceFile) bool { return path.Ext(f.Name) != ".cue" })
	return all
}

// All returns all of the snapshot's files in order.
func (s *Snapshot) All() Sources {
	out := Sources{Refused: slices.Sorted(maps.Keys(s.refused)), Tags: s.Tags()}
	for _, name := range slices.Sorted(maps.Keys(s.memory.files)) {
		out.Files = append(out.Files, SourceFile{name, s.place(name), s.memory.files[name]})
	}
	return out
}

// FromSources returns the snapshot of those files. From All it restores an equal snapshot. From Sources it
// returns one that compiles to the same build except for the digest, which covers the policy too.
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

// Step is a part of a compilation that may take long: parsing one file or evaluating one package.
type Step struct {
	// Package is the package's directory; empty if a file is parsed.
	Package string
	// Files are the file, or the files of the package's own directory, by the paths used in positions.
	Files []string
}

func (c *Compiler) begin(s Step) (end func()) {
	if c.step == nil {
		return func() {}
	}
	return c.step(s)
}

// stepOf returns the Step of evaluating a package.
func (s *sources) stepOf(id pkgID) Step {
	step := Step{Package: id.dir}
	own, _, _ := s.files(id)
	for _, f := range own {
		step.Files = append(step.Files, f.place)
	}
	return step
}
