package buildcache_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/internal/buildcache"
)

// BenchmarkEncoding encodes and decodes a build of 1,000 tools.
func BenchmarkEncoding(b *testing.B) {
	var src strings.Builder
	src.WriteString("package catalog\n")
	for i := range 1000 {
		fmt.Fprintf(&src, `tools: tool_%d: {
	description: "Look something up."
	args: {
		city!: string
		limit?: int & >=1 & <=100
		deep?: {a!: int, tags?: [...string]}
		verbose: *false | bool
	}
	effect: "read"
	tags: ["weather"]
	binding: http: {url: "https://api.example.com/weather/{city}{?limit}", headers: "X-Name": "n"}
}
`, i)
	}
	c := compile(b, tree(b, map[string]string{"catalog/tools/t.cue": src.String()}))
	if c.Build == nil || len(c.Build.Tools) != 1000 {
		b.Fatal("the catalog does not compile to 1,000 tools")
	}
	data, err := buildcache.Encode(c)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := buildcache.Encode(c); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(data)), "bytes")
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := buildcache.Decode(data); err != nil {
				b.Fatal(err)
			}
		}
	})
}
