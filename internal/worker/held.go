package worker

import (
	"maps"
	"slices"
	"sync"

	"github.com/catalogd/catalogd/registry"
)

// held are the packages whose sources are kept because a generation uses them.
type held struct {
	mu       sync.Mutex
	packages map[string]*holding // by digest
}

type holding struct {
	pack pack
	uses int
}

// hold keeps a build's packages until release is called, which must happen once.
func (h *held) hold(b *registry.Build) (release func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.packages == nil {
		h.packages = map[string]*holding{}
	}
	for _, p := range b.Packages {
		have := h.packages[p.Digest]
		if have == nil {
			have = &holding{pack: pack{Package: p}}
			for _, f := range p.Files {
				have.pack.Contents = append(have.pack.Contents, b.Sources[f.Sum])
			}
			h.packages[p.Digest] = have
		}
		have.uses++
	}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, p := range b.Packages {
			if have := h.packages[p.Digest]; have != nil {
				if have.uses--; have.uses == 0 {
					delete(h.packages, p.Digest)
				}
			}
		}
	}
}

func (h *held) pack(digest string) (pack, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	have, ok := h.packages[digest]
	if !ok {
		return pack{}, false
	}
	return have.pack, true
}

// gone are those of the digests that nobody holds, sorted.
func (h *held) gone(digests map[string]bool) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []string
	for _, d := range slices.Sorted(maps.Keys(digests)) {
		if h.packages[d] == nil {
			out = append(out, d)
		}
	}
	return out
}

func (h *held) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.packages)
}
