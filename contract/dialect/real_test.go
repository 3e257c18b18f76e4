package dialect_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/contract/dialect"
)

// real are the tools of the servers whose lists stand in testdata/dialect/tool-lists.
func real(t testing.TB) (tools []dialect.Tool) {
	t.Helper()
	files, err := filepath.Glob("../../testdata/dialect/tool-lists/*.json")
	if err != nil || len(files) != 8 {
		t.Fatalf("%d lists: %v", len(files), err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var list struct {
			Tools []struct {
				Name, Title, Description  string
				InputSchema, OutputSchema json.RawMessage
			}
		}
		if err := json.Unmarshal(raw, &list); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, l := range list.Tools {
			tools = append(tools, dialect.Tool{Name: l.Name, Title: l.Title, Description: l.Description, Input: l.InputSchema, Output: l.OutputSchema})
		}
	}
	return tools
}

// TestShares prints the table of BENCHMARKS.md: go test -run TestShares -v ./contract/dialect.
func TestShares(t *testing.T) {
	t.Parallel()
	tools := real(t)
	for _, d := range dialect.All() {
		var exact, narrows, wider, refused int
		why := map[string]int{}
		for _, tool := range tools {
			o := d.Offer(tool)
			switch {
			case o.Refused != nil:
				refused++
				for _, r := range o.Refused {
					why["R "+string(r.Code)+" "+tool.Name+" "+r.Path]++
				}
			case len(o.Losses) == 0:
				exact++
			default:
				n := false
				for _, l := range o.Losses {
					n = n || l.Narrows
					why[l.Keyword]++
				}
				if n {
					narrows++
				} else {
					wider++
				}
			}
		}
		t.Logf("%s: exact %d, wider %d, narrower %d, refused %d of %d; %s", d, exact, wider, narrows, refused, len(tools), strings.ReplaceAll(fmt.Sprint(why), "map", ""))
	}
}
