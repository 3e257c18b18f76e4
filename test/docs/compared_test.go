package docs

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/registry"
	"github.com/catalogd/catalogd/test/internal/harness"
)

type convertArgs struct {
	Amount float64 `json:"amount"`
	Rate   float64 `json:"rate" default:"1"`
}

func convert(_ context.Context, in convertArgs) (float64, error) {
	return in.Amount * in.Rate, nil
}

// TestGoFunctionOfCompared runs the Go function of docs/compared.md under its declaration there.
func TestGoFunctionOfCompared(t *testing.T) {
	t.Parallel()
	source, declaration := harness.ReadFile(t, "test/docs/compared_test.go"), ""
	shown := 0
	for _, b := range harness.Blocks(t, "docs/compared.md") {
		_, rest, _ := strings.Cut(b.Text, "\n")
		switch {
		case b.Kind == "go":
			if shown++; !strings.Contains(source, rest) {
				t.Errorf("docs/compared.md:%d: this is not in test/docs/compared_test.go:\n%s", b.Line, rest)
			}
		case b.Kind == "cue" && strings.Contains(b.Text, "binding: func:"):
			declaration = b.Text
		}
	}
	if shown != 2 || declaration == "" {
		t.Fatalf("got %d blocks of Go and the declaration %q, want 2 and one", shown, declaration)
	}
	dir := harness.Starter(t)
	harness.WriteFile(t, filepath.Join(dir, "catalog/convert.cue"), "package catalog\n\n"+declaration)
	ctx := t.Context()
	function, err := registry.Func("convert", convert, registry.Read)
	if err != nil {
		t.Fatal(err)
	}
	catalog, err := catalogd.New(ctx, catalogd.Config{Dir: dir, Functions: []*registry.Function{function}})
	if err != nil {
		t.Fatal(err)
	}
	defer catalog.Close()
	for args, want := range map[string]string{
		`{"amount": 10, "rate": 0.5}`: "5",
		`{"amount": 10}`:              "10",
		`{"amonut": 10}`:              "/amount: got nothing, expected a number (required)",
	} {
		call, err := catalog.Branch("default").Call(ctx, "convert", []byte(args))
		if err != nil || !strings.Contains(call.Text(), want) {
			t.Errorf("%s: got %q, %v, want %q", args, call.Text(), err, want)
		}
	}
}
