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

const large = 1 << 20

func TestRun(t *testing.T) {
	t.Setenv("JQ_SECRET", "leak")
	var runner jq.InProcess
	for _, tt := range []struct{ program, in, out, err string }{
		{`.`, `{"b":1,"a":"x"}`, `{"a":"x","b":1}`, ""},
		{`.n`, `{"n":9007199254740993}`, `9007199254740993`, ""},
		{`.n + 1`, `{"n":9007199254740993}`, `9007199254740994`, ""},
		{`.n`, `{"n":123456789012345678901234567890}`, `123456789012345678901234567890`, ""},
		{`.n * 10`, `{"n":123456789012345678901234567890}`, `1234567890123456789012345678900`, ""},
		{`.n`, `{"n":0.10000000000000000555}`, `0.10000000000000000555`, ""},
		{`1, 2`, `null`, `1`, ""},
		{`nan`, `null`, `null`, ""},
		{`[infinite, -infinite, nan, {a: [nan]}, 1]`, `null`, `[1.7976931348623157e+308,-1.7976931348623157e+308,null,{"a":[null]},1]`, ""},
		{`empty`, `null`, ``, "no output"},
		{`halt`, `null`, ``, "no output"},
		{`error("mine")`, `null`, ``, "mine"},
		{`.a.b`, `{"a":1}`, ``, "expected an object"},
		{`$ENV`, `null`, `{}`, ""},
		{`env.JQ_SECRET`, `null`, `null`, ""},
		{`"<a&b>"`, `null`, `"<a&b>"`, ""},
		{`"\u0001\n\u2028" | ., error`, `null`, "\"\\u0001\\n\u2028\"", ""},
		{`"/w" | @base64d`, `null`, `"\ufffd"`, ""},
		{`)`, `null`, ``, "line 1, column 1"},
		{`"x" * 1048577`, `null`, ``, "larger than 1048576 bytes"},
		{`"x" * 1048576 | length`, `null`, `1048576`, ""},
		{`[range(600000)]`, `null`, ``, "larger than 1048576 bytes"},
		{`error("x" * 100000)`, `null`, ``, "[cut: 100007 bytes in all]"},
	} {
		out, err := runner.Run(t.Context(), tt.program, json.RawMessage(tt.in), large)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) || len(err.Error()) > 5000 {
				t.Errorf("%s: got %s, %v; want an error with %q", tt.program, out, err, tt.err)
			}
			continue
		}
		if string(out) != tt.out || err != nil || !json.Valid(out) {
			t.Errorf("%s: got %s, %v; want %s", tt.program, out, err, tt.out)
		}
	}
	if out, err := runner.Run(t.Context(), `"x" * 1048576`, json.RawMessage("null"), large); err != nil || len(out) != large+2 {
		t.Errorf("a string of the limit: got %d bytes, %v", len(out), err)
	}
}

// TestNoCutExcerpt: a message quotes no part of a value, because maskers find only a whole secret in it.
func TestNoCutExcerpt(t *testing.T) {
	t.Parallel()
	const in = `{"key":"hunter2-which-is-longer-than-what-an-error-quotes"}`
	for program, want := range map[string]string{
		`.key.a`:                     "expected an object but got: string (long values are not quoted)",
		`.[0]`:                       "expected an array but got: object (long values are not quoted)",
		`.key | tonumber`:            "tonumber cannot be applied to (long values are not quoted)",
		`.key + 1`:                   "cannot add: string (long values are not quoted)",
		`.key as $k | {} | test($k)`: "test (long values are not quoted)",
		`1 + {}`:                     "cannot add: number (1) and object ({})",
		`error("no " + .key)`:        "error: no hunter2-which-is-longer-than-what-an-error-quotes",
		`error("see {a} ...")`:       "error: see {a} ...",
	} {
		if out, err := new(jq.InProcess).Run(t.Context(), program, json.RawMessage(in), large); err == nil || err.Error() != want {
			t.Errorf("%s: got %s, %v; want %s", program, out, err, want)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for program, want := range map[string]string{
		"":                       "empty",
		" \n":                    "empty",
		".a |":                   "line 1, column 5",
		"{\n  a: .b,\n  c: )\n}": "line 3, column 6",
		`"é" | ]`:                "line 1, column 7",
		"nosuch":                 "function not defined: nosuch/0",
		`splt(",")`:              `function not defined: splt/1; did you mean split/1?`,
		"$x":                     "variable not defined: $x",
		`import "a" as a; .`:     "imports a module",
		"input":                  "not allowed",
		"[inputs]":               "not allowed",
		"input_filename":         "function not defined",
		`include "a"; .`:         "imports a module",
		`"unterminated`:          "line 1",
	} {
		if err := jq.Check(program); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", program, err, want)
		}
	}
	err := jq.Check("]")
	var syntax *jq.SyntaxError
	if !errors.As(err, &syntax) || syntax.Line != 1 || syntax.Col != 1 {
		t.Errorf("got %#v", err)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := new(jq.InProcess).Run(ctx, `def f: f; f`, json.RawMessage("null"), large); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// TestManyPrograms: what is not kept any more is compiled again.
func TestManyPrograms(t *testing.T) {
	t.Parallel()
	var runner jq.InProcess
	for range 2 {
		for i := range 3000 {
			out, err := runner.Run(t.Context(), fmt.Sprintf(". + %d", i), json.RawMessage("1"), large)
			if err != nil || string(out) != fmt.Sprint(i+1) {
				t.Fatalf("%d: %s, %v", i, out, err)
			}
		}
	}
	if n := runner.Kept(); n == 0 || n > 1024 {
		t.Errorf("%d programs are kept, want 1 to 1024", n)
	}
}

func BenchmarkRun(b *testing.B) {
	var runner jq.InProcess
	in := json.RawMessage(`{"a":1,"b":2,"items":[{"name":"x"},{"name":"y"},{"name":"z"}]}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := runner.Run(b.Context(), `{sum: (.a + .b), list: [.items[] | .name]}`, in, large); err != nil {
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
			err := jq.Check(strings.Repeat(around[0], levels) + "1" + strings.Repeat(around[1], levels))
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
		program := fmt.Sprintf("reduce range(%d) as $i (0; if $i %% 2 == 0 then [.] else {a: .} end)", levels)
		out, err := new(jq.InProcess).Run(t.Context(), program, json.RawMessage("null"), large)
		if (err != nil) != fails || fails && !strings.Contains(err.Error(), "deeper than 1000 levels") || !fails && !json.Valid(out) {
			t.Errorf("%d levels: got %v, want an error: %t", levels, err, fails)
		}
	}
}
