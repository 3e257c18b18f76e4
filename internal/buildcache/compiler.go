package buildcache

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Compiler is a compiler that reads from the cache what this very program has compiled before.
type Compiler struct {
	Cache *Cache
	// Schema is the schema.cue, MaxTools the limit, that Next compiles with.
	Schema   []byte
	MaxTools int
	// Next compiles what is not in the cache.
	Next interface {
		Compile(context.Context, *loader.Snapshot) (*registry.Build, problem.List)
	}
}

// buildFiles is the kind of the files that hold compiled builds.
const buildFiles = "build"

// Compile returns what Next would. A build without errors is kept for the next start.
func (c *Compiler) Compile(ctx context.Context, snap *loader.Snapshot) (*registry.Build, problem.List) {
	// The snapshot's digest covers its tags in any order, but the order of two values for one tag may matter.
	key := c.Cache.key(buildFiles, snap.Digest(), strings.Join(snap.Tags(), "\x00"), digest(c.Schema),
		strconv.Itoa(c.MaxTools), strconv.Itoa(Format))
	if data, ok := c.Cache.read(buildFiles, key); ok {
		cached, err := Decode(data)
		if err == nil && cached.Build.Digest != snap.Digest() {
			err = fmt.Errorf("it is of other files (%s)", cached.Build.Digest)
		}
		if err == nil {
			return cached.Build, cached.Warnings
		}
		c.Cache.discard(buildFiles, key, err)
	}
	build, problems := c.Next.Compile(ctx, snap)
	if build != nil && !problems.HasErrors() {
		c.Cache.write(buildFiles, key, func() ([]byte, error) {
			return Encode(Compiled{Build: build, Warnings: problems})
		})
	}
	return build, problems
}
