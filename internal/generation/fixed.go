package generation

import (
	"github.com/catalogd/catalogd/invoke"
)

// Fixed returns a generation that has only call paths.
func Fixed(id string, paths map[string]*invoke.Path) *Generation {
	return &Generation{ID: id, paths: paths}
}
