package jq_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/catalogd/catalogd/internal/jq"
)

func decode(t testing.TB, src string) any {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(src))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestRun(t *testing.T) {
	t.Setenv("JQ_SECRET", "leak")
	for _, tt := range []struct{ program, in, out, err string }{
		{`.`, `{"b":1,"a":"x"}`, `{"a":"x","b":1}`, ""},
		{`.n`, `{"n":9007199254740993}`, `9007199254740993`, ""},
		{`.n + 1`, `{"n":9007199254740993}`, `9007199254740994`, ""},
		{`.n`, `{"n":123456789012345678901234567890}`, `123456789012345678901234567890`, ""},
		{`.n * 10`, `{"n":123456789012345678901234567890}`, `1234567890123456789012345678900`, ""},
		{`.n`, `{"n":0.10000000000000000555}`, `0.10000000000000000555`, ""},
		{`1, 2`, `null`, `1`, ""},
		{`nan`, `null`, `null`, ""},
		{`[infinite, nan, {a: [nan]}, 1]`, `null`, `[1.7976931348623157e+308,null,{"a":[null]},1]`, ""},
		{`empty`, `null`, ``, "no output"},
		{`halt`, `null`, ``, "no output"},
		{`error("mine")`, `null`, ``, "mine"},
		{`.a.b`, `{"a":1}`, ``, "expected an object"},
		{`$ENV`, `null`, `{}`, ""},
		{`env.JQ_SECRET`, `null`, `null`, ""},
		{`"<a&b>"`, `null`, `"<a&b>"`, ""},
	} {
		p, err := jq.Compile(tt.program)
		if err != nil {
			t.Errorf("%s: %v", tt.program, err)
			continue
		}
		out, err := p.Run(t.Context(), decode(t, tt.in))
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: got %v, %v; want an error with %q", tt.program, out, err, tt.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.program, err)
			continue
		}
		b, err := jq.Marshal(out)
		if err != nil || string(b) != tt.out {
			t.Errorf("%s: got %s, %v; want %s", tt.program, b, err, tt.out)
		}
		if b, err := json.Marshal(out); err != nil {
			t.Errorf("%s: encoding/json: %s, %v", tt.program, b, err)
		}
	}
}

func TestCompile(t *testing.T) {
	t.Parallel()
	for program, want := range map[string]string{
		"":                       "empty",
		" \n":                    "empty",
		".a |":                   "line 1, column 5",
		"{\n  a: .b,\n  c: )\n}": "line 3, column 6",
		`"é" | ]`:                "line 1, column 7",
		"nosuch":                 "function not defined: nosuch/0",
		"$x":                     "variable not defined: $x",
		`import "a" as a; .`:     "imports a module",
		"input":                  "not allowed",
		"[inputs]":               "not allowed",
		"input_filename":         "function not defined",
		`include "a"; .`:         "imports a module",
		`"unterminated`:          "line 1",
	} {
		if _, err := jq.Compile(program); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", program, err, want)
		}
	}
	_, err := jq.Compile("]")
	var syntax *jq.SyntaxError
	if !errors.As(err, &syntax) || syntax.Line != 1 || syntax.Col != 1 {
		t.Errorf("got %#v", err)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	p, err := jq.Compile(`def f: f; f`)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := p.Run(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// A program does not change its input, which others read at the same time.
func TestRunLeavesItsInput(t *testing.T) {
	t.Parallel()
	const src = `{"list":[3,1,2],"o":{"x":{"y":1}}}`
	in := decode(t, src)
	for _, program := range []string{`.list |= sort`, `.o.x.y = 2`, `del(.o.x)`, `.list[0] += 1`, `.list | sort`, `to_entries`, `[.[] | .] | .[0] |= reverse`, `walk(if type == "object" then del(.y) else . end)`} {
		p, err := jq.Compile(program)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Run(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		if b, _ := json.Marshal(in); string(b) != src {
			t.Fatalf("%s changed its input to %s", program, b)
		}
	}
}

func BenchmarkRun(b *testing.B) {
	p, err := jq.Compile(`{sum: (.a + .b), list: [.items[] | .name]}`)
	if err != nil {
		b.Fatal(err)
	}
	in := decode(b, `{"a":1,"b":2,"items":[{"name":"x"},{"name":"y"},{"name":"z"}]}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Run(b.Context(), in); err != nil {
			b.Fatal(err)
		}
	}
}

// TestNesting: a program that only nests is refused or compiles, and never takes the process down, as a stack that
// overflows does.
func TestNesting(t *testing.T) {
	t.Parallel()
	for _, around := range [][2]string{
		{"[", "]"}, {"(", ")"}, {"{a:", "}"}, {"-", ""}, {"try ", ""}, {".[", "]"}, {`"\(`, `)"`}, {"if . then ", " end"}, {"def f: ", "; f"},
		{"reduce . as $x (0; ", ")"}, {"first(", ")"}, {". as [$x] | ", ""}, {"label $x | ", ""}, {"1 + ", ""}, {"1 // ", ""}, {"1, ", ""}, {". | ", ""},
	} {
		for _, size := range []int{64 << 10, 1 << 20} {
			levels := (size - 1) / len(around[0]+around[1])
			_, err := jq.Compile(strings.Repeat(around[0], levels) + "1" + strings.Repeat(around[1], levels))
			if size > 64<<10 && (err == nil || !strings.Contains(err.Error(), "65536")) {
				t.Errorf("%s: %v", around[0], err)
			}
		}
	}
}

// TestDeepOutput: an output that nothing could encode is an error of the call.
func TestDeepOutput(t *testing.T) {
	t.Parallel()
	for levels, fails := range map[int]bool{999: false, 2000: true, 200_000: true} {
		p, err := jq.Compile(fmt.Sprintf("reduce range(%d) as $i (0; if $i %% 2 == 0 then [.] else {a: .} end)", levels))
		if err != nil {
			t.Fatal(err)
		}
		out, err := p.Run(t.Context(), nil)
		if (err != nil) != fails || fails && !strings.Contains(err.Error(), "deeper than 1000 levels") {
			t.Errorf("%d levels: %v", levels, err)
		}
		if _, err := json.Marshal(out); err != nil {
			t.Error(err)
		}
	}
}
