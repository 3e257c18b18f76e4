package derive_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/contract"
)

func TestScratch(t *testing.T) {
	data, err := os.ReadFile("/tmp/exp/rows.txt")
	if err != nil {
		t.Skip()
	}
	for _, c := range strings.Split(string(data), "\n----\n") {
		parts := strings.Split(c, "\n==\n")
		def, args, _ := strings.Cut("\n"+parts[0], "\n@@\n")
		s := newDeclared(t, def, args, contract.Closed)
		fmt.Println("####", def, "|", args)
		if s.problems != nil {
			fmt.Println("   PROBLEMS", s.problems)
		}
		if s.whole == nil {
			continue
		}
		fmt.Println("   schema", string(s.spec.Schema))
		for _, l := range s.spec.Losses {
			fmt.Println("   loss", l)
		}
		for _, call := range strings.Split(strings.TrimSpace(parts[1]), "\n") {
			got, found := check(s.whole, []byte(call))
			want, werr := s.truth(call)
			ok := (werr == nil) == (len(found) == 0)
			mark := "ok"
			if !ok {
				mark = "XXX"
			} else if werr == nil && !same(want, string(got.JSON())) {
				mark = "FILL"
			}
			fmt.Println("  ", mark, call, "=>", string(got.JSON()), found, "| cue:", want, werr)
		}
	}
}
