package problem_test

import (
	"strings"
	"testing"

	"github.com/catalogd/catalogd/problem"
)

func TestString(t *testing.T) {
	at := problem.Position{File: "catalog/a.cue", Line: 3, Col: 5}
	for _, test := range []struct {
		name string
		p    problem.Problem
		want string
	}{
		{"whole", problem.Problem{Code: problem.UnknownField, Severity: problem.Error, Position: at, Path: "tools.a", Message: "field not allowed"},
			"catalog/a.cue:3:5: unknown_field: tools.a: field not allowed"},
		{"warning without path", problem.Problem{Code: problem.NameConfusable, Severity: problem.Warning, Position: at, Message: "alike"},
			"catalog/a.cue:3:5: name_confusable: warning: alike"},
		{"no position", problem.Problem{Code: problem.NoPolicy, Severity: problem.Error, Message: "none"}, "-: no_policy: none"},
		{"file alone", problem.Problem{Code: problem.NotUTF8, Severity: problem.Error, Position: problem.Position{File: "a.cue"}, Message: "bad"}, "a.cue: not_utf8: bad"},
		{"one line for ever", problem.Problem{Code: problem.CUEValue, Severity: problem.Error, Position: at, Message: "a\nb"}, "catalog/a.cue:3:5: cue_value: a b"},
		{"further places", problem.Problem{Code: problem.DuplicateName, Severity: problem.Error, Position: at, Message: "twice", Also: []problem.Position{{File: "b.cue", Line: 1, Col: 1}, {File: "c.cue", Line: 2}}},
			"catalog/a.cue:3:5: duplicate_name: twice (see b.cue:1:1, c.cue:2)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := test.p.String(); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestList(t *testing.T) {
	var l problem.List
	l.Warnf(problem.NameConfusable, problem.Position{File: "b.cue", Line: 1}, "", "w")
	if l.HasErrors() || l.Err() != nil {
		t.Error("a warning counts as an error")
	}
	l.Errorf(problem.BadName, problem.Position{File: "b.cue", Line: 10}, "", "late")
	l.Errorf(problem.BadName, problem.Position{File: "b.cue", Line: 2}, "", "early")
	l.Errorf(problem.BadName, problem.Position{File: "a.cue", Line: 99}, "", "first")
	l.Errorf(problem.BadName, problem.Position{File: "a.cue", Line: 99}, "", "first")
	var got []string
	for _, p := range l.Sorted() {
		got = append(got, p.Message)
	}
	if s := strings.Join(got, " "); s != "first w early late" {
		t.Errorf("sorted: %s", s)
	}
	if errs, warnings := l.Sorted().Count(); errs != 3 || warnings != 1 {
		t.Errorf("count: %d errors, %d warnings", errs, warnings)
	}
	if err := l.Err(); err == nil || strings.Contains(err.Error(), "warning") || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("error: %v", err)
	}
}
