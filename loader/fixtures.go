package loader

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/errors"

	"github.com/catalogd/catalogd/internal/derive"
	"github.com/catalogd/catalogd/problem"
)

// Fixture is one decision that a table of tests in CUE expects.
type Fixture struct {
	// Name is the test's, or its place in the table.
	Name string
	Pos  problem.Position
	// Point is the decision point that is asked.
	Point string
	// Input is as much of the point's input as the table says, Expect what the decision must have; JSON objects.
	Input  json.RawMessage
	Expect json.RawMessage
}

// fixturePoints are the decision points that a table can ask.
var fixturePoints = []string{"connect", "discover", "list", "call", "result", "adopt"}

// fixtureSchema is what a table of tests looks like. Further fields are the table's own.
var fixtureSchema = `
tests: [...close({
	name?: =~"\\S"
	point!: "` + strings.Join(fixturePoints, `" | "`) + `"
	input!: {...}
	expect!: {...}
})]
...
`

// fixtures reports whether a file holds tests of decisions.
func fixtures(name string) bool {
	return strings.HasPrefix(name, "policy/") && strings.HasSuffix(name, "_test.cue")
}

// Fixtures reads the tests of decisions in the snapshot: the field tests of each file policy/**/*_test.cue. A file stands by
// itself: it may import CUE's own packages and no others. CUE is evaluated in this process, so a file that never ends
// holds up whoever tests, and nobody else: such files are no part of what is served.
func Fixtures(snap *Snapshot) (all []Fixture, problems problem.List) {
	err := fs.WalkDir(snap.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !fixtures(name) {
			return err
		}
		data, err := fs.ReadFile(snap.FS(), name)
		if err != nil {
			return err
		}
		found, wrong := readFixtures(snap.place(name), data)
		all, problems = append(all, found...), append(problems, wrong...)
		return nil
	})
	if err != nil {
		problems.Errorf(problem.Unreadable, problem.Position{File: "policy"}, "", "%v", err)
	}
	return all, problems.Sorted()
}

func readFixtures(place string, data []byte) (all []Fixture, problems problem.List) {
	refuse := func(err error) ([]Fixture, problem.List) {
		told := map[string]bool{} // a disjunction has an error for each alternative
		for _, e := range errors.Errors(err) {
			path := strings.Join(e.Path(), ".")
			message, whole := explainFixture(e)
			if whole && told[path] || strings.Contains(text(e), "errors in empty disjunction") {
				continue
			}
			told[path] = told[path] || whole
			at := derive.Position(e.Position())
			for _, p := range e.InputPositions() {
				if in := derive.Position(p); in.File == place && at.File != place {
					at = in // where the file says it, rather than the schema
				}
			}
			if at.File != place {
				at = problem.Position{File: place}
			}
			problems.Errorf(problem.CUEValue, at, path, "%s", message)
		}
		return nil, problems
	}
	ctx := cuecontext.New()
	v := ctx.CompileBytes(data, cue.Filename(place))
	if v.Err() != nil {
		return refuse(v.Err())
	}
	var places []problem.Position // a value that the schema was unified with has none of its own
	if list, err := v.LookupPath(cue.ParsePath("tests")).List(); err == nil {
		for list.Next() {
			places = append(places, derive.Position(list.Value().Pos()))
		}
	}
	v = v.Unify(ctx.CompileString(fixtureSchema, cue.Filename("fixtures")))
	tests := v.LookupPath(cue.ParsePath("tests"))
	if err := tests.Validate(cue.Concrete(true), cue.Final()); err != nil {
		return refuse(err)
	}
	list, err := tests.List()
	if err != nil {
		return refuse(errors.Promote(err, "tests"))
	}
	for i := 0; list.Next(); i++ {
		t := list.Value()
		f := Fixture{Name: fmt.Sprintf("tests[%d]", i), Pos: problem.Position{File: place}}
		if i < len(places) && places[i].File == place {
			f.Pos = places[i]
		}
		for _, field := range []struct {
			name string
			into func([]byte) error
		}{
			{"name", func(b []byte) error { return json.Unmarshal(b, &f.Name) }},
			{"point", func(b []byte) error { return json.Unmarshal(b, &f.Point) }},
			{"input", func(b []byte) error { f.Input = b; return nil }},
			{"expect", func(b []byte) error { f.Expect = b; return nil }},
		} {
			value := t.LookupPath(cue.ParsePath(field.name))
			if !value.Exists() {
				continue // name
			}
			b, err := value.MarshalJSON()
			if err == nil {
				err = field.into(b)
			}
			if err != nil {
				return refuse(errors.Promote(err, field.name))
			}
		}
		all = append(all, f)
	}
	return all, problems
}

// explainFixture puts an error of a test in words that say what to do. What is whole says all that is to be said of its path.
func explainFixture(e errors.Error) (message string, whole bool) {
	path := e.Path()
	if len(path) != 3 || path[0] != "tests" {
		return text(e), false
	}
	switch field := path[2]; {
	case strings.Contains(text(e), "field not allowed"):
		return unknownField(field, []string{"name", "point", "input", "expect"}), true
	case strings.Contains(text(e), "field is required but not present"):
		return fmt.Sprintf("%s is missing; write %s: ...", field, field), true
	case field == "point":
		return "point must be one of " + strings.Join(fixturePoints, ", "), true
	}
	return text(e), false
}
