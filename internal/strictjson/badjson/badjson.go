// Package badjson has the inputs that strict JSON refuses, and holds readers of JSON from outside to
// them. It is for tests only.
package badjson

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/internal/strictjson"
)

//go:embed bad.txt
var table string

// Row is one input that strict JSON refuses, with the problem and its offset.
type Row struct {
	Problem strictjson.Problem
	Offset  int
	Input   string
}

// Rows returns the table.
func Rows(t testing.TB) (rows []Row) {
	t.Helper()
	for line := range strings.Lines(table) {
		if line[0] == '#' {
			continue
		}
		columns := strings.SplitN(strings.TrimSpace(line), " | ", 3)
		if len(columns) != 3 {
			t.Fatalf("%q has no three columns", line)
		}
		offset, err := strconv.Atoi(columns[1])
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		input, err := strconv.Unquote(columns[2])
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		rows = append(rows, Row{strictjson.Problem(columns[0]), offset, input})
	}
	return rows
}

// Accepted says which rows a reader accepts, by their problem or their input, and why it may.
type Accepted map[string]string

// Refused checks that a reader refuses each row of the table, but for those accepted. slot is the text that is
// read, with %s where the row goes: its last value, so that no row can end in what follows. read must accept
// the slot with the JSON value good, and returns an error for what it refuses. An entry of accepted that no
// accepted row needs is an error too.
func Refused(t *testing.T, slot, good string, accepted Accepted, read func(text []byte) error) {
	t.Helper()
	if err := read(fmt.Appendf(nil, slot, good)); err != nil {
		t.Fatalf("%s with %s is refused: %v", slot, good, err)
	}
	needed := map[string]bool{}
	for _, row := range Rows(t) {
		err := read(fmt.Appendf(nil, slot, row.Input))
		_, byInput := accepted[row.Input]
		_, byProblem := accepted[string(row.Problem)]
		switch may := byInput || byProblem; {
		case err == nil && !may:
			t.Errorf("%s with %q is accepted, want %s", slot, row.Input, row.Problem)
		case err != nil && may:
			t.Errorf("%s with %q is refused, want it accepted: %v", slot, row.Input, err)
		}
		needed[row.Input], needed[string(row.Problem)] = true, true
	}
	for of, why := range accepted {
		if !needed[of] || why == "" {
			t.Errorf("%q is accepted: there is no such row, or no reason", of)
		}
	}
}
