package importer

import (
	"regexp"
	"strings"
)

// The forms in which clients refer to what stands elsewhere: ${VAR}, ${VAR:-default}, ${env:VAR},
// ${input:id}, ${workspaceFolder} and the like; Continue's ${{ secrets.VAR }}; LibreChat's {{VAR}}, a value
// of the user; opencode's {env:VAR} and {file:PATH}; $HOME; and %VAR% of Windows. $VAR is one only where the
// client expands it.
const (
	braced  = `\$\{\{[^{}]*\}\}|\$\{[^{}]*\}|\{(?:env|file):[^{}]*\}|\{\{[A-Z][A-Z0-9_]*\}\}`
	percent = `%[A-Za-z_][A-Za-z0-9_]{2,}%`
)

var (
	anyReference    = regexp.MustCompile(braced + `|` + percent + `|\$HOME\b`)
	dollarReference = regexp.MustCompile(braced + `|` + percent + `|\$[A-Za-z_][A-Za-z0-9_]*`)
	// In a URL %41B% are escapes, and no variable.
	anyInURL    = regexp.MustCompile(braced + `|\$HOME\b`)
	dollarInURL = regexp.MustCompile(braced + `|\$[A-Za-z_][A-Za-z0-9_]*`)
)

// syntax is which references a client expands.
type syntax struct{ dollar bool }

// in is the pattern of the references in a text.
func (x syntax) in(text string) *regexp.Regexp {
	switch url := strings.Contains(text, "://"); {
	case url && x.dollar:
		return dollarInURL
	case url:
		return anyInURL
	case x.dollar:
		return dollarReference
	}
	return anyReference
}

// without is the text without its references.
func (x syntax) without(text string) string { return x.in(text).ReplaceAllString(text, "") }

// bare is $VAR as a whole value, which Gemini CLI expands in env and headers; elsewhere it means the same.
var bare = regexp.MustCompile(`^\$[A-Za-z_][A-Za-z0-9_]*$`)

// home is ~ of a path, at its beginning or behind an option's =.
var home = regexp.MustCompile(`^(--?[A-Za-z][A-Za-z0-9-]*=)?~($|[/\\])`)

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// of the editor, not of the environment.
var editor = regexp.MustCompile(`^(workspaceFolder(Basename)?(:.*)?|workspaceRoot|userHome|pathSeparator|/|cwd|file.*|relativeFile.*|command:.*|config:.*|extension.*)$`)

// expansion are the shell's ${VAR:-default}, ${VAR-default}, ${VAR:=default} and ${VAR:?message}.
var expansion = regexp.MustCompile(`(?s)^((?:env:)?[A-Za-z_][A-Za-z0-9_]*)(:?[-=?])(.*)$`)

type reference struct {
	// env names an environment variable, input an input of VS Code, user a value that LibreChat has of each
	// user, file a file; else what is the reference's own text between the braces.
	env, input, user, file, what string
	fallback                     string
	hasFallback                  bool
}

// readReference reads one whole match of a syntax, or bare.
func readReference(s string) reference {
	if name, ok := strings.CutPrefix(s, "%"); ok {
		name = strings.TrimSuffix(name, "%")
		return reference{env: name, what: name}
	}
	if name, ok := strings.CutPrefix(s, "{{"); ok {
		name = strings.TrimSuffix(name, "}}")
		return reference{user: name, what: name}
	}
	if inner, ok := strings.CutPrefix(s, "${{"); ok {
		inner = strings.TrimSpace(strings.TrimSuffix(inner, "}}"))
		for _, kind := range []string{"secrets.", "inputs."} {
			if name, ok := strings.CutPrefix(inner, kind); ok && variable.MatchString(name) {
				return reference{env: name, what: name}
			}
		}
		return reference{what: inner}
	}
	for _, prefix := range []string{"{file:", "${file:"} {
		if name, ok := strings.CutPrefix(s, prefix); ok {
			return reference{file: strings.TrimSuffix(name, "}")}
		}
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
	case r.user != "":
		return "the user's " + shown(r.user)
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
