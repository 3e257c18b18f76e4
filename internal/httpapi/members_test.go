package httpapi

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMembersAreDescribed checks that every property of every schema of the description says what it is, in
// the words of the comment of its field.
func TestMembersAreDescribed(t *testing.T) {
	t.Parallel()
	written, err := json.MarshalIndent(commentsOf(t, described()), "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	if written = append(written, '\n'); flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile("members.json", written, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(written, membersFile) {
		t.Errorf("the comments of fields have changed; run go test ./internal/httpapi -update\n%s", cmp.Diff(string(membersFile), string(written)))
	}
	var document any
	if err := json.Unmarshal(writeDescription((&API{}).table()), &document); err != nil {
		t.Fatal(err)
	}
	if n := undescribed(t, "", document); n < 400 {
		t.Errorf("the document has %d properties; want all of them", n)
	}
}

// undescribed reports properties without a description, and returns how many properties there are.
func undescribed(t *testing.T, at string, v any) (n int) {
	switch v := v.(type) {
	case map[string]any:
		properties, _ := v["properties"].(map[string]any)
		if v["type"] == nil {
			properties = nil // "properties" is the name of a property
		}
		for name, one := range properties {
			n++
			schema, _ := one.(map[string]any)
			about, _ := schema["description"].(string)
			if foreign := regexp.MustCompile(`\bnil\b|\b[A-Z]\w+\.[A-Z]`).FindString(about); about == "" || foreign != "" {
				t.Errorf("%s/%s: description %q: want one that speaks of JSON; the comment of the field is it", at, name, about)
			}
		}
		for name, one := range v {
			n += undescribed(t, at+"/"+name, one)
		}
	case []any:
		for _, one := range v {
			n += undescribed(t, at, one)
		}
	}
	return n
}

// described returns the structs whose schemas are made, each once.
func described() map[reflect.Type]bool {
	s, seen := newSchemas(), map[reflect.Type]bool{}
	var walk func(t reflect.Type)
	walk = func(t reflect.Type) {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			walk(t.Elem())
		case reflect.Struct:
			if of := s.types[t]; seen[t] || of != nil && of.Ref == "" {
				return
			}
			own, embedded := members(t)
			seen[t] = true
			for _, m := range own {
				walk(m.field.Type)
			}
			for _, one := range embedded {
				walk(one)
			}
		}
	}
	of := func(all []content) {
		for _, c := range all {
			for _, one := range append(c.of.any, c.of) {
				if one.typ != nil {
					walk(one.typ)
				}
			}
		}
	}
	for _, one := range named {
		walk(one.typ)
	}
	for _, to := range (&API{}).table() {
		for _, o := range to.operations {
			if o.body != nil {
				of([]content{{of: o.body.of}})
			}
			for _, a := range o.all() {
				of(a.content)
			}
		}
	}
	return seen
}

// commentsOf returns the comments of the members of types, by type and name. A field without a comment has that of the
// field before it which speaks of it.
func commentsOf(t *testing.T, types map[reflect.Type]bool) map[string]map[string]string {
	t.Helper()
	all, read := map[string]map[string]string{}, map[string]map[string]*ast.StructType{}
	for of := range types {
		dir := filepath.Join("../..", strings.TrimPrefix(of.PkgPath(), "github.com/catalogd/catalogd"))
		if read[dir] == nil {
			read[dir] = structsIn(t, dir)
		}
		declared := read[dir][of.Name()]
		own, _ := members(of)
		if declared == nil || len(own) == 0 {
			continue
		}
		comments, last := map[string]string{}, ""
		for _, f := range declared.Fields.List {
			if text := f.Doc.Text() + f.Comment.Text(); text != "" {
				last = strings.Join(strings.Fields(text), " ")
			}
			for _, name := range f.Names {
				if f.Doc != nil || f.Comment != nil || regexp.MustCompile(`\b`+name.Name+`\b`).MatchString(last) {
					comments[name.Name] = last
				}
			}
		}
		about := map[string]string{}
		for _, m := range own {
			about[m.name] = inJSON(comments[m.field.Name], own)
		}
		all[of.String()] = about
	}
	return all
}

// inJSON rewrites a comment to speak of the members of a JSON object.
func inJSON(comment string, own []member) string {
	for _, m := range own {
		comment = regexp.MustCompile(`\b`+m.field.Name+`\b`).ReplaceAllString(comment, m.name)
	}
	return regexp.MustCompile(`\bnil\b`).ReplaceAllString(comment, "absent")
}

func structsIn(t *testing.T, dir string) map[string]*ast.StructType {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*ast.StructType{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if group, ok := d.(*ast.GenDecl); ok {
				for _, spec := range group.Specs {
					if spec, ok := spec.(*ast.TypeSpec); ok {
						if of, ok := spec.Type.(*ast.StructType); ok {
							all[spec.Name.Name] = of
						}
					}
				}
			}
		}
	}
	return all
}
