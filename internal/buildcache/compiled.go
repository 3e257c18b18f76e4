package buildcache

import (
	"errors"

	"github.com/catalogd/catalogd/internal/wire"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Compiled is a build with what belongs to it.
type Compiled struct {
	Build *registry.Build
	// Warnings are the compiler's. There are no errors in them.
	Warnings problem.List
	// Policy holds the files below policy/, and catalog.lock.json where there is one, by their paths from the
	// catalog's root. It is nil in the cache, where the snapshot has them.
	Policy map[string][]byte
}

// Encode encodes c: equal bytes for equal contents. A build with errors is refused.
func Encode(c Compiled) ([]byte, error) {
	if c.Warnings.HasErrors() {
		return nil, errors.New("a build with errors is not kept")
	}
	return wire.Marshal(c), nil
}

// Decode decodes what Encode wrote, and validates it. It never panics; the error says why data can't be
// served, and is wire.ErrLayout where another version of catalogd encoded them.
func Decode(data []byte) (Compiled, error) {
	var c Compiled
	if err := wire.Unmarshal(data, &c); err != nil {
		return Compiled{}, err
	}
	if c.Build == nil {
		return Compiled{}, errors.New("there is no build in it")
	}
	return c, c.validate()
}
