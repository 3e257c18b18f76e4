package loader

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/parser"

	"github.com/catalogd/catalogd/internal/derive"
	"github.com/catalogd/catalogd/problem"
)

// Fixture is one decision that a test table in CUE expects.
type Fixture struct {
	// Name is the name of the test, or its index in the table.
	Name string
	Pos  problem.Position
	// Point is the decision point that is evaluated.
	Point string
	// Input is the part of the point's input that the table gives; Expect is what the decision must contain.
	// Both are JSON objects.
	Input  json.RawMessage
	Expect json.RawMessage
}

// fixturePoints are the decision points that a test table may name.
var fixturePoints = []string{"connect", "discover", "list", "call", "result", "release", "adopt"}

// fixtureSchema is the schema of a test table. Further fields are allowed and ignored.
var fixtureSchema = `
tests: [...close({
	name?: =~"\\S"
	point!: "` + strings.Join(fixturePoints, `" | "`) + `"
	input!: {...}
	expect!: {...}
})]
...
`

// fixtures reports whether a file holds decision tests.
func fixtures(name string) bool {
	return strings.HasPrefix(name, "policy/") && strings.HasSuffix(name, "_test.cue")
}

// Fixtures reads the decision tests of the snapshot: the field tests of each file policy/**/*_test.cue. Each
// file is evaluated alone: it may import CUE's standard packages and no others. CUE is evaluated in this
// process without a time limit, so a file whose evaluation doesn't end blocks the test run; such files are
// never part of what is served.
func Fixtures(snap *Snapshot) (all []Fixture, problems problem.List) {
	err := fs.WalkDir(snap.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !fixtures(name) {
			return err
		}
		data, err := fs.ReadFile(snap.FS(), name)
		if err != nil {
			return err
		}
		file := &source{name: name, place: snap.place(name), data: data}
		syntax, err := parser.ParseFile(file.place, data, parser.ParseComments)
		file.broken = err != nil
		if file.literals(syntax); len(file.problems) > 0 {
			problems = append(problems, file.problems...)
			return nil
		}
		found, wrong := readFixtures(file.place, data)
		all, problems = append(all, found...), append(problems, wrong...)
		return nil
	})
	if err != nil {
		problems.Errorf(problem.Unreadable, problem.Position{File: "policy"}, "", "%v", err)
	}
	return all, problems.Discreet().Sorted()
}

func readFixtures(place string, data []byte) (all []Fixture, problems problem.List) {
	refuse := func(err error) ([]Fixture, problem.List) {
		reported := map[string]bool{} // a disjunction has an error for each alternative
		for _, e := range errors.Errors(err) {
			path := strings.Join(e.Path(), ".")
			message, whole := explainFixture(e)
			if whole && reported[path] || strings.Contains(text(e), "errors in empty disjunction") {
				continue
			}
			reported[path] = reported[path] || whole
			at := derive.Position(e.Position())
			for _, p := range e.InputPositions() {
				if in := derive.Position(p); in.File == place && at.File != place {
					at = in // the position in the file, rather than in the schema
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
	var places []problem.Position // a value that was unified with the schema has no position of its own
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

// explainFixture rewrites an error of a test as a message that says what to do. If whole is true, no other
// error of the same path is reported.
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
