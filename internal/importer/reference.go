package importer

import (
	"regexp"
	"strings"
)

// anyReference are the forms in which clients refer to what stands elsewhere: ${VAR}, ${VAR:-default}, ${env:VAR},
// ${input:id}, ${workspaceFolder} and the like, and opencode's {env:VAR} and {file:PATH}.
var anyReference = regexp.MustCompile(`\$\{[^{}]*\}|\{(env|file):[^{}]*\}`)

// bare is $VAR, which Gemini CLI expands in env and headers and other clients nowhere.
var bare = regexp.MustCompile(`^\$[A-Za-z_][A-Za-z0-9_]*$`)

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// of the editor, not of the environment.
var editor = regexp.MustCompile(`^(workspaceFolder(Basename)?(:.*)?|workspaceRoot|userHome|pathSeparator|/|cwd|file.*|relativeFile.*|command:.*|config:.*|extension.*)$`)

// expansion are the shell's ${VAR:-default}, ${VAR-default}, ${VAR:=default} and ${VAR:?message}.
var expansion = regexp.MustCompile(`(?s)^((?:env:)?[A-Za-z_][A-Za-z0-9_]*)(:?[-=?])(.*)$`)

type reference struct {
	// env names an environment variable, input an input of VS Code, file a file; else what is the reference's own text
	// between the braces.
	env, input, file, what string
	fallback               string
	hasFallback            bool
}

// readReference reads one whole match of anyReference, or bare.
func readReference(s string) reference {
	if name, ok := strings.CutPrefix(s, "{file:"); ok {
		return reference{file: strings.TrimSuffix(name, "}")}
	}
	inner := strings.TrimSuffix(strings.TrimLeft(s, "${"), "}")
	ref := reference{what: inner}
	if m := expansion.FindStringSubmatch(inner); m != nil {
		ref.what = m[1]
		if op := strings.TrimPrefix(m[2], ":"); op == "-" || op == "=" { // ? has a message, and no default
			ref.fallback, ref.hasFallback = m[3], true
		}
	}
	name := ref.what
	named := strings.TrimPrefix(name, "env:")
	switch {
	case strings.HasPrefix(name, "input:"):
		ref.input = strings.TrimPrefix(name, "input:")
	case variable.MatchString(named) && (named != name || !editor.MatchString(name)):
		ref.env = named
	}
	return ref
}

// text is the reference as a message names it.
func (r reference) text() string {
	switch {
	case r.env != "":
		return "the variable " + shown(r.env)
	case r.input != "":
		return "the input " + shown(r.input)
	case r.file != "":
		return "a file"
	}
	return "the editor's " + shown(r.what)
}

// upper makes the name of an environment variable of any text.
func upper(parts ...string) string {
	s := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, strings.Join(parts, "_"))
	if s == "" || (s[0] >= '0' && s[0] <= '9') {
		return "_" + s
	}
	return s
}
