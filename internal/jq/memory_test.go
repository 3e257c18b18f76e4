package jq_test

import (
	"errors"
	"testing"

	"github.com/catalogd/catalogd/internal/jq"
)

// TestMemory: a program that grows step by step without end is stopped.
func TestMemory(t *testing.T) {
	for _, source := range []string{"[range(1e10)]", "[repeat([1, 2, 3])]"} {
		program, err := jq.Compile(source)
		if err != nil {
			t.Fatal(err)
		}
		program.Grow(24 << 20)
		out, err := program.Run(t.Context(), nil)
		var grown jq.MemoryError
		if !errors.As(err, &grown) {
			t.Errorf("%s: %v %v", source, out, err)
		}
	}
}
