package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
)

// TestReference holds docs/cli.md to the definitions that make the help, the man pages and the completions.
// CATALOGD_UPDATE=1 writes it.
func TestReference(t *testing.T) {
	t.Parallel()
	const page = "../../docs/cli.md"
	want := reference()
	if os.Getenv("CATALOGD_UPDATE") != "" {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("docs/cli.md is not what the commands say; run make goldens (-want +got):\n%s", diff)
	}
}

const referenceHead = `# Command line

This page is made from the definitions of the commands, as ` + "`catalogd help COMMAND`" + `, the man pages and the completions are.
Commands that work on a catalog find its root from any folder in it; which daemon a command asks is in
[operations.md](operations.md#which-daemon-a-command-asks).

## Exit status

| status | means |
|---|---|
`

const referenceFiles = `
## Files

| file | is |
|---|---|
| ` + "`cue.mod/`, `schema.cue`, `schemas/`, `policy/catalogd/`" + ` | catalogd's part of a catalog; ` + "`catalogd init --upgrade`" + ` replaces them |
| ` + "`catalog/*.cue`" + ` | tools, servers and branches ([schema.md](schema.md)) |
| ` + "`policy/*.rego`, `policy/*/data.yaml`" + ` | the policy and its data ([policy.md](policy.md)) |
| ` + "`catalog.lock.json`" + ` | the reviewed tools of upstream servers; ` + "`catalogd lock`" + ` writes it ([upstream.md](upstream.md)) |
| the file of ` + "`--tokens`" + ` | hashes of tokens, mode 0600; ` + "`catalogd token`" + ` writes it ([access.md](access.md)) |
| the directory of ` + "`--state`" + ` | caches, what was adopted last, intents ([builds.md](builds.md#the-state-directory)) |
`

// reference returns docs/cli.md.
func reference() string {
	var b strings.Builder
	b.WriteString(referenceHead)
	for _, status := range exitStatuses {
		fmt.Fprintf(&b, "| %s | %s |\n", status[0], status[1])
	}
	b.WriteString("\n## Environment\n\n| variable | does |\n|---|---|\n")
	for _, v := range environment {
		fmt.Fprintf(&b, "| `%s` | %s |\n", strings.ReplaceAll(v[0], ", ", "`, `"), cell(v[1]))
	}
	b.WriteString(referenceFiles)
	root := newParser(new(cli), io.Discard, io.Discard, func(int) {}).Model.Node
	b.WriteString("\n## Options of every command\n")
	table(&b, root.Flags)
	catalog := flagsOf(new(catalogFlags))
	b.WriteString("\n## Options of a catalog\n\nCommands that compile a catalog have these, and their own table doesn't repeat them.\n")
	table(&b, slices.DeleteFunc(slices.Clone(leaf(root, "check").Flags), func(f *kong.Flag) bool { return !slices.Contains(catalog, f.Name) }))
	for _, node := range root.Leaves(true) {
		fmt.Fprintf(&b, "\n## %s\n\n    catalogd %s\n\n%s", node.Path(), node.Summary(), cell(node.Help))
		own := slices.DeleteFunc(slices.Clone(node.Flags), func(f *kong.Flag) bool { return f.Hidden || slices.Contains(catalog, f.Name) })
		if len(own) < len(node.Flags) {
			b.WriteString(" It takes the [options of a catalog](#options-of-a-catalog).")
		}
		if formats := formatsOf(node); len(formats) > 2 {
			fmt.Fprintf(&b, " `--format` also takes %s.", strings.Join(formats[2:], ", "))
		}
		b.WriteByte('\n')
		if len(node.Positional) > 0 {
			b.WriteString("\n| argument | is |\n|---|---|\n")
			for _, arg := range node.Positional {
				fmt.Fprintf(&b, "| `%s` | %s |\n", arg.ShortSummary(), cell(arg.Help))
			}
		}
		table(&b, own)
	}
	return b.String()
}

// table writes the options, or nothing if there are none.
func table(b *strings.Builder, flags []*kong.Flag) {
	if len(flags) == 0 {
		return
	}
	b.WriteString("\n| option | default | does |\n|---|---|---|\n")
	for _, f := range flags {
		name, value := "--"+f.Name, ""
		if f.Short != 0 {
			name = "-" + string(f.Short) + ", " + name
		}
		if !f.IsBool() && !f.IsCounter() {
			kind := f.PlaceHolder
			if kind == "" {
				kind = strings.ToUpper(f.Name)
			}
			name += "=" + kind
		}
		if f.HasDefault && f.Default != "" {
			value = "`" + f.Default + "`"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", name, value, cell(f.Help))
	}
}

func cell(text string) string { return strings.NewReplacer("|", `\|`, "\n", " ").Replace(text) }

// flagsOf returns the names of the options that a struct defines.
func flagsOf(flags any) (names []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeOf(flags).Elem()) {
		names = append(names, kongName(f.Name))
	}
	return names
}

// kongName writes a field's name as an option's.
func kongName(field string) string {
	var b strings.Builder
	for i, r := range field {
		if i > 0 && r >= 'A' && r <= 'Z' {
			b.WriteByte('-')
		}
		b.WriteRune(r)
	}
	return strings.ToLower(b.String())
}

func leaf(root *kong.Node, path string) *kong.Node {
	all := root.Leaves(true)
	return all[slices.IndexFunc(all, func(n *kong.Node) bool { return n.Path() == path })]
}

// TestEnvironment: every variable that catalogd reads by a name in its source is listed for users. Names that only a
// catalog or a policy knows (secrets, variables of commands) are read by other names.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	var listed []string
	for _, v := range environment {
		listed = append(listed, strings.Split(v[0], ", ")...)
	}
	values := map[string]string{} // of constants, by folder and name
	read := map[string]string{}   // a variable, or folder and name of a constant after =, to the file
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains([]string{"node_modules", "tools", "bench", "test", "testdata", "examples", ".git"}, d.Name()) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GenDecl:
				for _, spec := range n.Specs {
					constant, ok := spec.(*ast.ValueSpec)
					for i := 0; ok && n.Tok == token.CONST && i < len(constant.Values); i++ {
						if text, ok := literal(constant.Values[i]); ok {
							values[filepath.Dir(path)+"="+constant.Names[i].Name] = text
						}
					}
				}
			case *ast.Field:
				if n.Tag != nil {
					if text, err := strconv.Unquote(n.Tag.Value); err == nil {
						if name := reflect.StructTag(text).Get("env"); name != "" {
							read[name] = path
						}
					}
				}
			case *ast.CallExpr:
				selector, ok := n.Fun.(*ast.SelectorExpr)
				if ok && slices.Contains([]string{"Getenv", "LookupEnv"}, selector.Sel.Name) && len(n.Args) == 1 {
					if text, ok := literal(n.Args[0]); ok {
						read[text] = path
					} else if name, ok := n.Args[0].(*ast.Ident); ok {
						read[filepath.Dir(path)+"="+name.Name] = path
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for name, path := range read {
		if strings.Contains(name, "=") {
			value, constant := values[name]
			if !constant {
				continue // the name of a variable is not known before
			}
			name = value
		}
		found++
		if !slices.Contains(listed, name) {
			t.Errorf("%s reads %s, which is not listed in environment (man.go)", path, name)
		}
	}
	if found < 8 {
		t.Errorf("%d variables are read, want at least 8: the search is wrong", found)
	}
}

func literal(e ast.Expr) (string, bool) {
	basic, ok := e.(*ast.BasicLit)
	if !ok || basic.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(basic.Value)
	return text, err == nil
}
