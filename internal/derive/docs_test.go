package derive_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd/contract"
)

// TestDocsArguments runs the examples of docs/arguments.md: a block of CUE, and the blocks behind it that say which schema,
// which losses and which answers to calls come of it.
func TestDocsArguments(t *testing.T) {
	t.Parallel()
	page := argumentsPage(t)
	examples := regexp.MustCompile("(?s)```cue\n").Split(page, -1)[1:]
	if len(examples) < 5 {
		t.Fatalf("%d examples", len(examples))
	}
	for i, example := range examples {
		source, behind, _ := strings.Cut(example, "```")
		t.Run(fmt.Sprint(i, " ", strings.SplitN(source, "\n", 2)[0]), func(t *testing.T) {
			d := newDeclared(t, "", source, contract.Closed)
			if d.problems.HasErrors() {
				t.Fatal(d.problems)
			}
			spec := d.spec
			said := 0
			for _, block := range regexp.MustCompile("(?s)```(json|losses|calls)\n(.*?)```").FindAllStringSubmatch(behind, -1) {
				said++
				switch block[1] {
				case "json":
					var want bytes.Buffer
					if err := json.Compact(&want, []byte(block[2])); err != nil {
						t.Fatal(err)
					}
					if diff := gocmp.Diff(want.String(), string(spec.Schema)); diff != "" {
						t.Error(diff)
					}
				case "losses":
					var got strings.Builder
					for _, l := range spec.Losses {
						fmt.Fprintf(&got, "%s %s: %s\n", l.Kind, l.Path, l.What)
					}
					if diff := gocmp.Diff(block[2], got.String()); diff != "" {
						t.Error(diff)
					}
				case "calls":
					docsCalls(t, d, block[2])
				}
			}
			if said == 0 {
				t.Error("the page says nothing about it")
			}
			if len(spec.Losses) > 0 && !strings.Contains(behind, "```losses\n") {
				t.Errorf("the page does not tell of %v", spec.Losses)
			}
		})
	}
}

// docsCalls holds lines of `call => arguments` and `call => refused at /pointer, /pointer`, and CUE says the same.
func docsCalls(t *testing.T, d *declared, lines string) {
	t.Helper()
	for line := range strings.Lines(lines) {
		call, want, ok := strings.Cut(strings.TrimSpace(line), "=>")
		if !ok {
			t.Fatalf("not `call => answer`: %s", line)
		}
		d.agrees(t, call)
		args, found := check(d.whole, json.RawMessage(call))
		var at []string
		for _, v := range found {
			at = append(at, v.Pointer)
		}
		got := "refused at " + strings.Join(slices.Compact(at), ", ")
		if slices.Equal(at, []string{""}) {
			got = "refused"
		}
		if found == nil {
			got, want = jsonOf(normal(string(args.JSON()))), jsonOf(normal(want))
		}
		if strings.TrimSpace(want) != got {
			t.Errorf("%s\nthe page says %s\nit is         %s\n%v", call, want, got, found)
		}
	}
}

// TestDocsExact derives the examples of the tables of what is exact and what CUE decides, and asks CUE about both.
func TestDocsExact(t *testing.T) {
	t.Parallel()
	_, exact, _ := strings.Cut(argumentsPage(t), "\n## Where the schema is exact\n")
	exact, _, _ = strings.Cut(exact, "\n## ")
	exact, decided, ok := strings.Cut(exact, "\nEverything else is decided by CUE")
	if !ok {
		t.Fatal("the page has not both tables")
	}
	tried := 0
	for _, table := range []struct {
		rows string
		lost bool
	}{{exact, false}, {decided, true}} {
		for _, row := range regexp.MustCompile(`(?m)[^\\]\| ((?:\\\||[^|\n])*) \|$`).FindAllStringSubmatch(table.rows, -1) {
			for _, example := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
				tried++
				args := strings.ReplaceAll(example[1], `\|`, "|")
				d := newDeclared(t, "_max: 3, #N: {v!: int, next?: #N}", args, contract.Closed)
				if len(d.problems) > 0 || len(d.spec.Losses) > 0 != table.lost {
					t.Errorf("%s: %v %v", args, d.problems, dumped(d.spec.Losses))
					continue
				}
				d.agrees(t, drawnCalls(d, args, 60)...)
			}
		}
	}
	if tried < 40 {
		t.Errorf("only %d examples", tried)
	}
}

// The table of losses has each kind once.
func TestDocsLosses(t *testing.T) {
	t.Parallel()
	var got, want []string
	_, table, _ := strings.Cut(argumentsPage(t), "\n## What the schema can't say\n")
	table, _, _ = strings.Cut(table, "\n## ")
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(table, -1) {
		got = append(got, row[1])
	}
	for _, kind := range contract.LossKinds() {
		want = append(want, string(kind))
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func argumentsPage(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/arguments.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}
