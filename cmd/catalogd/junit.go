package main

import (
	"encoding/xml"
	"fmt"
	"io"
	"time"

	"github.com/catalogd/catalogd/problem"
)

// The elements of a JUnit report that CI systems read.
type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Skipped  int          `xml:"skipped,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string       `xml:"classname,attr"`
	Name    string       `xml:"name,attr"`
	File    string       `xml:"file,attr,omitempty"`
	Line    int          `xml:"line,attr,omitempty"`
	Seconds string       `xml:"time,attr"`
	Failure *junitResult `xml:"failure"`
	Skipped *junitResult `xml:"skipped"`
}

type junitResult struct {
	Message string `xml:"message,attr"`
}

// add adds a case to the suite; failure and skipped are empty if they don't apply.
func (s *junitSuite) add(class, name string, pos problem.Position, took time.Duration, failure, skipped string) {
	c := junitCase{Class: class, Name: name, File: pos.File, Line: pos.Line, Seconds: fmt.Sprintf("%.6f", took.Seconds())}
	s.Tests++
	switch {
	case skipped != "":
		s.Skipped++
		c.Skipped = &junitResult{skipped}
	case failure != "":
		s.Failures++
		c.Failure = &junitResult{failure}
	}
	s.Cases = append(s.Cases, c)
}

// junit writes the results as a JUnit report: one suite for the policy's tests, one for the decisions, one
// for the examples.
func (o *testOutput) junit(w io.Writer) error {
	policy, decisions, examples := junitSuite{Name: "policy"}, junitSuite{Name: "decisions"}, junitSuite{Name: "examples"}
	for _, t := range o.Policy.Tests {
		failure, skipped := "", ""
		if t.Skipped {
			skipped = "its name begins with todo_"
		} else if !t.Pass {
			failure = "the test is not true" + details(t)
		}
		policy.add("policy", t.Name, t.Position, t.Duration, failure, skipped)
	}
	for _, d := range o.Decisions {
		decisions.add("decisions."+d.Pos.File, d.Name, d.Pos, 0, d.Message, "")
	}
	for _, x := range o.Examples {
		examples.add("examples", fmt.Sprintf("%s[%d]", x.Tool, x.Index), x.Pos, 0, x.Message, x.Skipped)
	}
	report := junitSuites{Tests: o.Passed + o.Failed + o.Skipped, Failures: o.Failed, Skipped: o.Skipped, Suites: []junitSuite{policy, decisions, examples}}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(report); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
