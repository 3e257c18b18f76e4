package effects

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/registry"
	"github.com/catalogd/catalogd/test/internal/harness"
)

// BenchmarkEffects is a whole life of an intent: a call of a tool that does nothing and is declared to write, through the
// call path, the effector and the store, with nobody else at it. fsync-us is what the disk takes to make a page durable.
func BenchmarkEffects(b *testing.B) {
	for _, durability := range []string{"power", "process"} {
		for _, callers := range []int{1, 16} {
			b.Run(fmt.Sprintf("%s/%d", durability, callers), func(b *testing.B) {
				dir := harness.Starter(b)
				harness.WriteFile(b, filepath.Join(dir, "catalog/nothing.cue"), "package catalog\n\ntools: nothing: {\n\tdescription: \"Does nothing.\"\n\targs: n!: int\n\teffect: \"write\"\n\ttags: [\"everyday\"]\n\tbinding: jq: program: \".n\"\n}\n")
				state := b.TempDir()
				if err := os.Chmod(state, 0o700); err != nil {
					b.Fatal(err)
				}
				c, err := catalogd.New(b.Context(), catalogd.Config{Dir: dir, State: state, Intents: catalogd.Intents{Durability: durability}})
				if err != nil {
					b.Fatal(err)
				}
				defer c.Close()
				branch := c.Branch("default")
				var n atomic.Int64
				once := func() {
					call, err := branch.Call(b.Context(), "nothing", json.RawMessage(fmt.Sprintf(`{"n":%d}`, n.Add(1))))
					if err != nil || call.Status != registry.Succeeded {
						b.Error(call.Err, err)
					}
				}
				once() // opens the store
				b.ReportAllocs()
				b.SetParallelism(max(1, callers/2))
				begin := time.Now()
				if callers == 1 {
					for b.Loop() {
						once()
					}
				} else {
					b.ResetTimer()
					b.RunParallel(func(pb *testing.PB) {
						for pb.Next() {
							once()
						}
					})
				}
				b.ReportMetric(float64(b.N)/time.Since(begin).Seconds(), "lives/s")
				b.ReportMetric(float64(fsync(b, state).Microseconds()), "fsync-us")
			})
		}
	}
}

// fsync is how long the disk takes to make 4 KiB more of a file durable, the median of 50.
func fsync(b *testing.B, dir string) time.Duration {
	f, err := os.Create(filepath.Join(dir, "fsync"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	var took []time.Duration
	for range 50 {
		if _, err := f.Write(make([]byte, 4096)); err != nil {
			b.Fatal(err)
		}
		begin := time.Now()
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	return took[len(took)/2]
}
