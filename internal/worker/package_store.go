package worker

import (
	"maps"
	"slices"
	"sync"

	"github.com/catalogd/catalogd/registry"
)

// packageStore has the sources of the packages that generations use. It is safe for concurrent use.
type packageStore struct {
	mu       sync.Mutex
	packages map[string]*heldPackage // by digest
}

// heldPackage is a package with the number of builds that hold it.
type heldPackage struct {
	sources packageSources
	holders int
}

// hold keeps a build's packages until release is called, which must happen once.
func (s *packageStore) hold(b *registry.Build) (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.packages == nil {
		s.packages = map[string]*heldPackage{}
	}
	for _, p := range b.Packages {
		held := s.packages[p.Digest]
		if held == nil {
			held = &heldPackage{sources: packageSources{Package: p}}
			for _, f := range p.Files {
				held.sources.Contents = append(held.sources.Contents, b.Sources[f.Sum])
			}
			s.packages[p.Digest] = held
		}
		held.holders++
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, p := range b.Packages {
			if held := s.packages[p.Digest]; held != nil {
				if held.holders--; held.holders == 0 {
					delete(s.packages, p.Digest)
				}
			}
		}
	}
}

// get returns the sources of a package that is held.
func (s *packageStore) get(digest string) (packageSources, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	held, ok := s.packages[digest]
	if !ok {
		return packageSources{}, false
	}
	return held.sources, true
}

// unheld returns those of the digests whose packages nobody holds, sorted.
func (s *packageStore) unheld(digests map[string]bool) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, d := range slices.Sorted(maps.Keys(digests)) {
		if s.packages[d] == nil {
			out = append(out, d)
		}
	}
	return out
}

func (s *packageStore) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.packages)
}
