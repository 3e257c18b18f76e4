package dialect_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/contract/dialect"
)

// real are the tools of the servers whose lists stand in testdata/dialect/tool-lists.
func real(t testing.TB) []dialect.Tool {
	return listed(t, "../../testdata/dialect/tool-lists/*.json", 8)
}

// listed are the tools of so many lists.
func listed(t testing.TB, glob string, lists int) (tools []dialect.Tool) {
	t.Helper()
	files, err := filepath.Glob(glob)
	if err != nil || len(files) != lists {
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

// TestReal holds that real tools keep their meaning: the same schema for mcp, and a form that the provider's rules take
// with a list of what is lost for the rest.
func TestReal(t *testing.T) {
	t.Parallel()
	for _, tool := range real(t) {
		for _, d := range dialect.All() {
			offer := d.Offer(tool)
			if offer.Refused != nil {
				if offer.Tool != nil {
					t.Errorf("%s: %s: both refused and offered", tool.Name, d)
				}
				continue
			}
			for _, broken := range rules[d](offer.Tool) {
				t.Errorf("%s: %s: %s", tool.Name, d, broken)
			}
			if d == dialect.MCP {
				var said struct{ InputSchema, OutputSchema json.RawMessage }
				if err := json.Unmarshal(offer.Tool, &said); err != nil {
					t.Fatal(err)
				}
				if canonical(t, said.InputSchema) != canonical(t, tool.Input) || canonical(t, said.OutputSchema) != canonical(t, tool.Output) {
					t.Errorf("%s: the schema is not the same", tool.Name)
				}
			}
		}
	}
}

// canonical is JSON with sorted keys and without spaces.
func canonical(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	if raw == nil {
		return ""
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestShares counts how the real tools fare in each dialect. BENCHMARKS.md has its table:
// go test -run '^TestShares$' -v ./contract/dialect.
func TestShares(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../BENCHMARKS.md")
	if err != nil {
		t.Fatal(err)
	}
	tools := real(t)
	for _, d := range dialect.All() {
		var exact, undeclared, lossy, fallback, refused int
		for _, tool := range tools {
			offer := d.Offer(tool)
			others := slices.ContainsFunc(offer.Losses, func(l dialect.Loss) bool { return l.Keyword != "additionalProperties" })
			switch {
			case offer.Refused != nil:
				refused++
			case offer.Fallback != nil:
				fallback++
			case len(offer.Losses) == 0:
				exact++
			case others:
				lossy++
			default:
				undeclared++
			}
		}
		line := fmt.Sprintf("| %s | %d | %d | %d | %d | %d |", d, exact, undeclared, lossy, fallback, refused)
		t.Log(line)
		if !strings.Contains(string(page), line) {
			t.Errorf("BENCHMARKS.md does not have %s", line)
		}
	}
}

// TestTokens holds the estimate to what its comment says, against the counts of o200k_base in testdata/dialect/tokens.json
// (by github.com/tiktoken-go/tokenizer v0.10.0 over the same text).
func TestTokens(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../testdata/dialect/tokens.json")
	if err != nil {
		t.Fatal(err)
	}
	var lists map[string]map[string]int
	if err := json.Unmarshal(raw, &lists); err != nil {
		t.Fatal(err)
	}
	counts := map[string][]int{}
	for _, list := range lists {
		for name, n := range list {
			counts[name] = append(counts[name], n)
		}
	}
	var off, worst, estimated, counted float64
	tools := real(t)
	for _, tool := range tools {
		got := float64(dialect.Tokens(tool))
		wrong, nearest := math.Inf(1), 0.0
		for _, n := range counts[tool.Name] { // a name may stand in two lists
			if d := math.Abs(got/float64(n) - 1); d < wrong {
				wrong, nearest = d, float64(n)
			}
		}
		off, worst = off+wrong, max(worst, wrong)
		estimated, counted = estimated+got, counted+nearest
	}
	mean := off / float64(len(tools))
	t.Logf("mean error %.1f %%, worst %.1f %%, of the sum %.1f %%", 100*mean, 100*worst, 100*(estimated/counted-1))
	if mean > 0.03 || worst > 0.13 || math.Abs(estimated/counted-1) > 0.01 {
		t.Errorf("mean error %.3f, worst %.3f, of the sum %.3f", mean, worst, estimated/counted-1)
	}
}

func BenchmarkOffer(b *testing.B) {
	tools := real(b)
	for _, d := range dialect.All() {
		b.Run(string(d), func(b *testing.B) {
			for b.Loop() {
				for _, tool := range tools {
					d.Offer(tool)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(tools)), "us/tool")
		})
	}
}
