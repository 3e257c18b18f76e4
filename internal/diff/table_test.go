package diff_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd/internal/diff"
	"github.com/catalogd/catalogd/internal/generation"
)

// row returns a tool's cells for the branches b1, b2 and so on.
func row(tool string, access ...generation.Access) (cells []generation.AccessCell) {
	for i, a := range access {
		branch := "b" + string(rune('1'+i))
		cells = append(cells, generation.AccessCell{Branch: branch, Tool: tool, Principal: "p", Access: a})
	}
	return cells
}

func TestTable(t *testing.T) {
	t.Parallel()
	const (
		c, d, a = generation.Callable, generation.Depends, generation.Approval
		r, h    = generation.Refused, generation.Hidden
	)
	many := slices.Concat(row("one", c, c, c, c, c, c, c, c), row("two", h, d, a, r, h, h, h, c))
	long := strings.Repeat("long_", 5) + "name"
	for _, test := range []struct {
		name  string
		table diff.Table
		cells []generation.AccessCell
		want  []string // without title and legend
	}{
		{"every mark, tools in order", diff.Table{}, slices.Concat(row("z", c, d, a), row("a", r, h, c)), []string{
			"TOOL  b1    b2  b3",
			"a     list  -   call",
			"z     call  if  ask",
		}},
		{"what does not fit is in a block below", diff.Table{Width: 40}, many, []string{
			"TOOL  b1    b2    b3    b4    b5    b6",
			"one   call  call  call  call  call  call",
			"two   -     if    ask   list  -     -",
			"",
			"TOOL  b7    b8",
			"one   call  call",
			"two   -     call",
		}},
		{"a column more fits exactly, or not", diff.Table{Width: 45}, many[:8], []string{
			"TOOL  b1    b2    b3    b4    b5    b6",
			"one   call  call  call  call  call  call",
			"",
			"TOOL  b7    b8",
			"one   call  call",
		}},
		{"one column less", diff.Table{Width: 46}, many[:8], []string{
			"TOOL  b1    b2    b3    b4    b5    b6    b7",
			"one   call  call  call  call  call  call  call",
			"",
			"TOOL  b8",
			"one   call",
		}},
		{"a long name goes on below, in the least width", diff.Table{Width: 1}, row(long, c, h, h), []string{
			"TOOL                        b1    b2  b3",
			"long_long_long_long_long_   call  -   -",
			"  name",
		}},
		{"unless all columns fit beside it", diff.Table{Width: 40}, row(long, c, h), []string{
			"TOOL                           b1    b2",
			"long_long_long_long_long_name  call  -",
		}},
		{"without a width", diff.Table{}, row(long, c, h), []string{
			"TOOL" + strings.Repeat(" ", len(long)-2) + "b1    b2",
			long + "  call  -",
		}},
		{"wide and combining characters", diff.Table{Width: 40}, slices.Concat(
			row("表示", c), row("e\u0301te\u0301", d), row(strings.Repeat("漢", 19), a),
		), []string{
			"TOOL                                b1",
			"e\u0301te\u0301                                 if",
			strings.Repeat("漢", 17) + "  ask",
			"  漢漢",
			"表示                                call",
		}},
		{"nothing affects a terminal or begins a row", diff.Table{}, row("a\nb\x1b[31m\u202e", c), []string{
			`TOOL                b1`,
			`a\nb\x1b[31m\u202e  call`,
		}},
		{"rows that are left out are counted", diff.Table{Visible: true}, slices.Concat(
			row("one", h, h), row("two", h, r),
		), []string{
			"TOOL  b1  b2",
			"two   -   list",
			"",
			"left out: 1 of 2 tools, hidden in every column; shown without --visible",
		}},
		{"nothing is left", diff.Table{Visible: true}, row("one", h, h), []string{
			"left out: 1 of 1 tools, hidden in every column; shown without --visible",
		}},
		{"a tool under another name", diff.Table{}, []generation.AccessCell{
			{Branch: "b1", Tool: "one", Shown: "uno", Principal: "p", Access: c},
			{Branch: "b2", Tool: "one", Shown: "eins", Principal: "p", Access: h},
		}, []string{
			"TOOL  b1           b2",
			"one   call as uno  -",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			if err := test.table.Write(&out, test.cells); err != nil {
				t.Fatal(err)
			}
			text, ok := strings.CutPrefix(out.String(), "principal p\n\n")
			if !ok {
				t.Fatalf("no title: %q", out.String())
			}
			text, legend, _ := strings.Cut(text, "\n\ncall: runs;")
			if got := strings.Split(text, "\n"); !cmp.Equal(test.want, got) {
				t.Errorf("got\n%s\nwant\n%s\n%s", text, strings.Join(test.want, "\n"), cmp.Diff(test.want, got))
			}
			if unbroken := strings.Join(strings.Fields("call: runs;"+legend), " "); unbroken != diff.Legend {
				t.Errorf("got the legend %q", unbroken)
			}
		})
	}
	if len(diff.Legend) > 78 {
		t.Errorf("the legend has %d columns, want at most 78", len(diff.Legend))
	}
}

// The columns are the branches of one principal, or the principals of one branch, each in the order given.
func TestTableBy(t *testing.T) {
	t.Parallel()
	var cells []generation.AccessCell
	for _, branch := range []string{"b1", "b2"} {
		for _, who := range []string{"zoe", "ann"} {
			cells = append(cells, generation.AccessCell{
				Branch: branch, Tool: "t", Principal: who, Access: generation.Callable,
			})
		}
	}
	cells[3].Access, cells[3].Why = generation.Hidden, "no"
	const notes = diff.Legend + "\nwhy: --format csv, or catalogd explain BRANCH TOOL --principal NAME\n"
	for byPrincipal, want := range map[bool]string{
		false: "principal zoe\n\nTOOL  b1    b2\nt     call  call\n\n" +
			"principal ann\n\nTOOL  b1    b2\nt     call  -\n\n" + notes,
		true: "branch b1\n\nTOOL  zoe   ann\nt     call  call\n\n" +
			"branch b2\n\nTOOL  zoe   ann\nt     call  -\n\n" + notes,
	} {
		var out strings.Builder
		if err := (diff.Table{ByPrincipal: byPrincipal}).Write(&out, cells); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("by principal: %t: (-want +got)\n%s", byPrincipal, diff)
		}
	}
}
