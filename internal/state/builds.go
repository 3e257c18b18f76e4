package state

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/catalogd/catalogd/internal/buildfile"
	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Builds is a compiler that takes from the cache what this very program has compiled before. A snapshot's digest covers
// all that compiling depends on but the schema and the limit, which are in the key too.
type Builds struct {
	Cache *Cache
	// Schema is the schema.cue, MaxTools the limit, that Next compiles with.
	Schema   []byte
	MaxTools int
	// Next compiles what is not in the cache.
	Next interface {
		Compile(context.Context, *loader.Snapshot) (*registry.Build, problem.List)
	}
}

const builds = "build"

// Compile returns what Next would. A build without errors is kept for the next start.
func (b *Builds) Compile(ctx context.Context, snap *loader.Snapshot) (*registry.Build, problem.List) {
	// The digest takes the tags in any order; of two values for one tag, their order may matter.
	key := b.Cache.key(builds, snap.Digest(), strings.Join(snap.Tags(), "\x00"), buildfile.Digest(b.Schema), strconv.Itoa(b.MaxTools), strconv.Itoa(buildfile.Format))
	if data, ok := b.Cache.read(builds, key); ok {
		c, err := buildfile.Unmarshal(data)
		if err == nil && c.Build.Digest != snap.Digest() {
			err = fmt.Errorf("it is of other files (%s)", c.Build.Digest)
		}
		if err == nil {
			return c.Build, c.Warnings
		}
		b.Cache.damaged(builds, key, err)
	}
	build, problems := b.Next.Compile(ctx, snap)
	if build != nil && !problems.HasErrors() {
		b.Cache.write(builds, key, func() ([]byte, error) {
			return buildfile.Marshal(buildfile.Content{Build: build, Warnings: problems})
		})
	}
	return build, problems
}
