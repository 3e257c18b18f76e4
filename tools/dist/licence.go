package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// module is a module that is linked.
type module struct {
	Path, Version, Dir string
	sum                string   // as in go.sum
	licences           []string // SPDX identifiers
	text               []byte   // of all its licence and notice files
}

// listModules returns the modules of this one by path, with the directories that have their files.
func listModules() (map[string]module, error) {
	cmd := exec.Command("go", "list", "-m", "-json", "all")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list -m all: %w", err)
	}
	all := map[string]module{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var m module
		if err := dec.Decode(&m); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all[m.Path] = m
	}
}

// linked returns the modules that are linked into a program, with their licences, and last Go's standard library. A
// licence that is not recognised is an error: nobody has said that we may pass the module on.
func (r *release) linked(program string) ([]module, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, err
	}
	var linked []module
	for _, dep := range info.Deps {
		m := r.modules[dep.Path]
		if dep.Replace != nil || m.Version != dep.Version || m.Dir == "" {
			return nil, fmt.Errorf("%s@%s is not the module that go list knows", dep.Path, dep.Version)
		}
		m.sum = dep.Sum
		linked = append(linked, m)
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	linked = append(linked, module{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go"), Dir: strings.TrimSpace(string(goroot))})
	for i := range linked {
		if err := linked[i].read(); err != nil {
			return nil, err
		}
	}
	return linked, nil
}

// licenceFile matches the names of files that have licences and notices.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|notice|patents)([-._].*)?$`)

// read reads the licences of a module.
func (m *module) read() error {
	names, err := os.ReadDir(m.Dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !name.Type().IsRegular() || !licenceFile.MatchString(name.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(m.Dir, name.Name()))
		if err != nil {
			return err
		}
		m.text = append(append(m.text, bytes.TrimSpace(text)...), "\n\n"...)
	}
	if m.licences = recognise(string(m.text)); len(m.licences) == 0 {
		return fmt.Errorf("the licence of %s@%s is not recognised", m.Path, m.Version)
	}
	return nil
}

// A licence is recognised by all of its sentences, which no other has together.
var sentences = []struct {
	licence   string
	all, none []string
}{
	{"Apache-2.0", []string{"apache license", "version 2.0", "www.apache.org/licenses"}, nil},
	{"MIT", []string{"permission is hereby granted, free of charge, to any person obtaining a copy", "without restriction"}, nil},
	{"BSD-3-Clause", []string{"redistribution and use in source and binary forms", "used to endorse or promote products"}, nil},
	{"BSD-2-Clause", []string{"redistribution and use in source and binary forms"}, []string{"used to endorse or promote products"}},
	{"ISC", []string{"permission to use, copy, modify, and/or distribute this software for any purpose with or without fee"}, nil},
	{"MPL-2.0", []string{"mozilla public license", "version 2.0"}, nil},
}

var blanks = regexp.MustCompile(`[\s*#/]+`)

// recognise returns the licences of a text.
func recognise(text string) (found []string) {
	text = blanks.ReplaceAllString(strings.ToLower(strings.ReplaceAll(text, "http://", "")), " ")
	for _, s := range sentences {
		fits := true
		for _, part := range s.all {
			fits = fits && strings.Contains(text, blanks.ReplaceAllString(part, " "))
		}
		for _, part := range s.none {
			fits = fits && !strings.Contains(text, blanks.ReplaceAllString(part, " "))
		}
		if fits {
			found = append(found, s.licence)
		}
	}
	return found
}

// texts returns what the licences ask to be passed on.
func texts(linked []module) []byte {
	var b bytes.Buffer
	b.WriteString("catalogd contains these modules, under the licences that follow each.\n")
	for _, m := range linked {
		fmt.Fprintf(&b, "\n%s\n%s %s (%s)\n\n%s", strings.Repeat("=", 80), m.Path, m.Version, strings.Join(m.licences, " and "), m.text)
	}
	return b.Bytes()
}
