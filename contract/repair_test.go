package contract_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/contract"
)

// repairer changes arguments by nothing but what violations say, as a model does that takes them at their word.
type repairer struct{ args any }

var (
	nearestOne = regexp.MustCompile(`^one of \d+ alternatives; nearest is alternative (?:\{.*?\}|[^:]*): (.*)$`)
	lacking    = regexp.MustCompile(`^(\S+) is missing \((.*)\)(?:, "([^"]*)" was sent)?$`)
	surplus    = regexp.MustCompile(`^(\S+) is none of its keys(?:, did you mean "([^"]*)")?$`)
	wrong      = regexp.MustCompile(`^(\S+): got .*?, expected (.*)$`)
	atLeast    = regexp.MustCompile(`(?:at least|greater than) (-?[0-9]+)`)
	example    = regexp.MustCompile(`such as (\S+)`)
)

func (r *repairer) apply(v contract.Violation) {
	switch {
	case v.Sent != "":
		r.rename(v.Pointer[:strings.LastIndexByte(v.Pointer, '/')+1]+v.Sent, v.Pointer[strings.LastIndexByte(v.Pointer, '/')+1:])
	case strings.HasPrefix(v.Expected, "it to be left out"), v.Expected == "no further item":
		r.remove(v.Pointer)
	case strings.HasPrefix(v.Got, "an unexpected key"), v.Got == "a key of this name":
		r.rename(v.Pointer, v.Nearest)
	case nearestOne.MatchString(v.Expected):
		for _, complaint := range strings.Split(nearestOne.FindStringSubmatch(v.Expected)[1], "; ") {
			if m := lacking.FindStringSubmatch(complaint); m != nil {
				if m[3] != "" {
					r.rename(v.Pointer+"/"+m[3], m[1])
				} else {
					r.set(v.Pointer+"/"+m[1], written(m[2]))
				}
			} else if m := surplus.FindStringSubmatch(complaint); m != nil {
				r.rename(v.Pointer+"/"+m[1], m[2])
			} else if m := wrong.FindStringSubmatch(complaint); m != nil {
				r.set(v.Pointer+"/"+m[1], written(m[2]))
			}
		}
	case strings.Contains(v.Expected, "alternatives to fit, and"):
		// The first that fits is meant: what the second requires is left out.
		_, list, _ := strings.Cut(v.Expected, " do: ")
		second := strings.Split(list, "; ")[1]
		r.remove(v.Pointer + "/" + strings.Trim(second, "{}"))
	case strings.Contains(v.Expected, " together"):
		_, names, _ := strings.Cut(v.Expected, "not with ")
		name, _, _ := strings.Cut(names, ",")
		r.remove(v.Pointer + "/" + name)
	case strings.Contains(v.Expected, "at least 1 key of "):
		_, names, _ := strings.Cut(v.Expected, "at least 1 key of ")
		name, _, _ := strings.Cut(names, ",")
		r.set(v.Pointer+"/"+name, "?")
	case strings.Contains(v.Expected, "that is "), strings.Contains(v.Expected, "that are "):
		_, what, _ := strings.Cut(v.Expected, "that is ")
		if what == "" {
			_, what, _ = strings.Cut(v.Expected, "that are ")
		}
		list, _ := r.get(v.Pointer).([]any)
		r.set(v.Pointer, append(slices.Clone(list), written(what)))
	case strings.Contains(v.Got, "are the same"):
		var i, j int
		_, pair, _ := strings.Cut(v.Got, "of which ")
		if _, err := fmt.Sscanf(pair, "%d and %d", &i, &j); err == nil {
			r.remove(v.Pointer + "/" + strconv.Itoa(j))
		}
	default:
		r.set(v.Pointer, written(v.Expected))
	}
}

// written is a value by the words that say what is expected.
func written(words string) any {
	words, _, _ = strings.Cut(words, " (required")
	if list, ok := strings.CutPrefix(words, "one of "); ok {
		words = "exactly " + strings.Split(list, ", ")[0]
	}
	if exact, ok := strings.CutPrefix(words, "exactly "); ok {
		var v any
		exact, _, _ = strings.Cut(exact, ", at most")
		if err := json.Unmarshal([]byte(exact), &v); err == nil {
			return v
		}
	}
	low := 1
	if m := atLeast.FindStringSubmatch(words); m != nil {
		low, _ = strconv.Atoi(m[1])
	}
	switch {
	case strings.HasPrefix(words, "an integer"), strings.HasPrefix(words, "a number"):
		if strings.Contains(words, "greater than") {
			low++
		}
		return low
	case strings.HasPrefix(words, "true or false"):
		return true
	case strings.HasPrefix(words, "an array"):
		return []any{}
	case strings.HasPrefix(words, "an object"):
		return map[string]any{}
	case example.MatchString(words):
		return example.FindStringSubmatch(words)[1]
	}
	return strings.Repeat("a", low)
}

// place finds what is around a pointer, and the last step.
func (r *repairer) place(pointer string) (around any, step string) {
	steps := strings.Split(pointer, "/")[1:]
	around = r.args
	for _, s := range steps[:len(steps)-1] {
		switch parent := around.(type) {
		case map[string]any:
			around = parent[s]
		case []any:
			i, err := strconv.Atoi(s)
			if err != nil || i >= len(parent) {
				return nil, ""
			}
			around = parent[i]
		}
	}
	return around, steps[len(steps)-1]
}

func (r *repairer) get(pointer string) any {
	around, step := r.place(pointer)
	if parent, ok := around.(map[string]any); ok {
		return parent[step]
	}
	return nil
}

func (r *repairer) set(pointer string, v any) {
	switch parent, step := r.place(pointer); parent := parent.(type) {
	case map[string]any:
		parent[step] = v
	case []any:
		if i, err := strconv.Atoi(step); err == nil && i < len(parent) {
			parent[i] = v
		}
	}
}

func (r *repairer) remove(pointer string) {
	switch parent, step := r.place(pointer); parent := parent.(type) {
	case map[string]any:
		delete(parent, step)
	case []any:
		if i, err := strconv.Atoi(step); err == nil && i < len(parent) {
			r.set(pointer[:strings.LastIndexByte(pointer, '/')], slices.Delete(slices.Clone(parent), i, i+1))
		}
	}
}

func (r *repairer) rename(pointer, name string) {
	v := r.get(pointer)
	r.remove(pointer)
	if name != "" {
		r.set(pointer[:strings.LastIndexByte(pointer, '/')]+"/"+name, v)
	}
}

// The messages suffice to repair a call: each call of TestMessages is accepted after at most four rounds of doing what they
// say, and no round needs anything else.
func TestRepair(t *testing.T) {
	t.Parallel()
	more := []struct{ name, x, in, want string }{
		{"a misspelt key in a list", `{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"}},"required":["name"],"additionalProperties":false}}`, `[{"nmae":"x","age":"7"}]`, ""},
		{"several kinds at once", weatherArgument, `{"units":"kelvin","limit":0,"opts":{"deep":"x","tags":["a","a","b"]},"cty":"Paris"}`, ""},
		{"alternatives in alternatives", `{"anyOf":[{"type":"object","properties":{"op":{"const":"eq"},"v":` + payment + `},"required":["op","v"]},{"type":"object","properties":{"op":{"const":"and"},"l":{"type":"array","minItems":1,"items":{"type":"string"}}},"required":["op","l"]}]}`, `{"op":"eq","v":{"kind":"cash"}}`, ""},
	}
	for _, tc := range append(slices.Clone(messages), more...) {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := around(t, tc.x, "")
			var args map[string]any
			if err := json.Unmarshal([]byte(`{"x":`+tc.in+`}`), &args); err != nil {
				t.Fatal(err)
			}
			r := &repairer{args}
			var said []string
			for range 5 {
				raw, err := json.Marshal(r.args)
				if err != nil {
					t.Fatal(err)
				}
				_, found := check(c, raw)
				if found == nil {
					return
				}
				said = append(said, fmt.Sprintf("%s: %v", raw, found))
				for _, v := range found {
					r.apply(v)
				}
			}
			t.Errorf("not accepted after four rounds:\n%s", strings.Join(said, "\n"))
		})
	}
}

const weatherArgument = `{"type":"object","properties":{
	"city":{"type":"string","minLength":1},"units":{"enum":["celsius","fahrenheit"]},"limit":{"type":"integer","minimum":1},
	"opts":{"type":"object","properties":{"deep":{"type":"integer"},"tags":{"type":"array","items":{"type":"string"},"uniqueItems":true}},"additionalProperties":false}},
	"required":["city"],"additionalProperties":false}`
