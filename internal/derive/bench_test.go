package derive_test

import (
	"fmt"
	"strings"
	"testing"

	"cuelang.org/go/cue"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/derive"
)

// fiveArguments is a tool of ordinary size.
const fiveArguments = `tools: tool_%d: args: {
	// The city name to look up.
	city!: string & strings.MinRunes(1)
	// The unit of the answer.
	units: *"celsius" | "fahrenheit"
	limit?: *10 | int & >=1 & <=100
	tags?: [...string] & list.MaxItems(5)
	where?: {lat!: number & >=-90 & <=90, lon!: number & >=-180 & <=180}
}
`

// BenchmarkArgs derives every tool of one package; CUE's build of it is not counted, its evaluation of the args is.
func BenchmarkArgs(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var text strings.Builder
			text.WriteString("package catalog\n\nimport (\"strings\", \"list\")\n\n")
			for i := range n {
				fmt.Fprintf(&text, fiveArguments, i)
			}
			files := map[string]string{"tools.cue": text.String()}
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				v := catalog(b, files)
				b.StartTimer()
				pkg := derive.NewPackage(v, nil)
				for i := range n {
					args := v.LookupPath(cue.ParsePath(fmt.Sprintf("tools.tool_%d.args", i)))
					if _, _, problems := derive.Args(pkg, args, v.LookupPath(cue.ParsePath(fmt.Sprintf("tools.tool_%d.#Args", i))), contract.Closed, "tools"); problems.HasErrors() {
						b.Fatal(problems)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "us/tool")
		})
	}
}
