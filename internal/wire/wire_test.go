package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/wire"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// build has nil and empty values, pointers to zero values, and repeated, long and invalid strings.
func build() registry.Build {
	long := string(bytes.Repeat([]byte("long "), 40))
	at := problem.Position{File: "catalog/a.cue", Line: 3, Col: 4}
	return registry.Build{
		Digest: "sha256:x",
		Tools: []registry.Tool{
			{
				Name: "a", Description: long, Tags: []string{}, Timeout: 30e9,
				Args: contract.Spec{
					Schema: json.RawMessage(`{"a":"<&>"}`), Fields: []contract.Field{},
					WhenClosed: &contract.ClosedForm{Losses: []contract.Loss{{}}},
				},
				Binding: registry.Binding{JQ: &registry.JQ{}},
				Source:  registry.Source{Pos: at, Fields: map[string]problem.Position{"b": at, "a": {}, "": at}, Digest: long},
			},
			{
				Name: "b", Description: long, Result: &contract.Spec{},
				Examples: []registry.Example{{Args: json.RawMessage{}, Rejected: "a"}},
				Binding:  registry.Binding{Exec: &registry.Exec{Argv: nil, Env: map[string]registry.Value{}, MaxOutput: -1}},
			},
		},
		Servers:  nil,
		Branches: []registry.Branch{{Name: "a", Select: &registry.Selector{}, Labels: map[string]string{"a": "\xff"}}},
	}
}

func TestRoundTrip(t *testing.T) {
	want := build()
	data := wire.Marshal(want)
	var got registry.Build
	if err := wire.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for range 20 {
		if !bytes.Equal(data, wire.Marshal(got)) {
			t.Fatal("two encodings of one value differ")
		}
	}
}

func TestUnmarshalRefuses(t *testing.T) {
	data := wire.Marshal(build())
	var got registry.Build
	var other registry.Tool
	if err := wire.Unmarshal(data, &other); !errors.Is(err, wire.ErrLayout) {
		t.Errorf("another type: got %v, want ErrLayout", err)
	}
	for n := range len(data) {
		if err := wire.Unmarshal(data[:n], &got); err == nil {
			t.Fatalf("%d of %d bytes are accepted", n, len(data))
		}
	}
	if err := wire.Unmarshal(append(bytes.Clone(data), 0), &got); err == nil {
		t.Error("a byte too many is accepted")
	}
}

// TestMarshalPanics: a type that is not plain data is a mistake in the program.
func TestMarshalPanics(t *testing.T) {
	type node struct{ Next *node }
	for name, v := range map[string]any{
		"interface": struct{ A any }{}, "function": struct{ F func() }{}, "unexported": struct{ a int }{},
		"recursive": node{}, "keys": map[int]string{}, "float": 1.5,
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: Marshal did not panic", name)
				}
			}()
			wire.Marshal(v)
		}()
	}
}

// FuzzUnmarshal: any bytes end in an error, or in a value that survives another round trip.
func FuzzUnmarshal(f *testing.F) {
	data := wire.Marshal(build())
	f.Add(data[8:])
	f.Fuzz(func(t *testing.T, b []byte) {
		var v, again registry.Build
		if wire.Unmarshal(append(bytes.Clone(data[:8]), b...), &v) != nil {
			return
		}
		if err := wire.Unmarshal(wire.Marshal(v), &again); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(v, again); diff != "" {
			t.Error(diff)
		}
	})
}
