package source

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Meant is what an error's name probably meant.
type Meant string

// Lines implements ast.ErrorDetails.
func (m Meant) Lines() []string { return []string{string(m)} }

// meant is the end of a message about an undefined reference: a similar name, or empty.
func meant(details ast.ErrorDetails) string {
	ref, ok := details.(*ast.RefErrInvalidDetail)
	if !ok || ref.Pos >= len(ref.Ref) || ref.Pos < 1 {
		return ""
	}
	written, ok := ref.Ref[ref.Pos].Value.(ast.String)
	if !ok {
		return ""
	}
	known := map[string]bool{}
	for _, v := range ref.OneOf {
		if name, ok := v.(ast.String); ok {
			known[string(name)] = true
		}
	}
	for _, field := range alsoCalled[strings.ToLower(strings.ReplaceAll(string(written), "_", ""))] {
		if first, _, _ := strings.Cut(field, "."); known[first] {
			return fmt.Sprintf("; did you mean %s.%s?", ref.Ref[:ref.Pos], field)
		}
	}
	return DidYouMean(string(written), known)
}

// alsoCalled are the fields of inputs by what else they are called, in lower case without underscores.
var alsoCalled = map[string][]string{
	"args": {"arguments"}, "params": {"arguments"}, "parameters": {"arguments"}, "inputs": {"arguments"}, "body": {"arguments"},
	"user": {"principal"}, "caller": {"principal"}, "identity": {"principal"}, "client": {"principal"}, "who": {"principal"},
	"subject": {"principal"}, "actor": {"principal"}, "token": {"principal"}, "username": {"principal.name", "name"},
	"roles": {"groups"}, "role": {"groups"}, "teams": {"groups"}, "id": {"name"}, "sub": {"name"}, "email": {"name"}, "isadmin": {"admin"},
	"now": {"time"}, "date": {"time"}, "timestamp": {"time"}, "hour": {"time"}, "toolname": {"tool.name"}, "name": {"tool.name"},
	"method": {"tool.name"}, "tools": {"tool"}, "labels": {"branch.labels"}, "tags": {"tool.tags"}, "effect": {"tool.effect"},
	"readonly": {"effect"}, "kind": {"binding"}, "type": {"binding"}, "output": {"result"}, "response": {"result"}, "content": {"structured"},
	"limit": {"rate"}, "calls": {"rate"}, "attempt": {"intent.attempt"}, "approval": {"intent.approval"}, "age": {"intent.age"},
	"command": {"target.command"}, "url": {"target.url"}, "host": {"target.host"}, "server": {"tool.server"},
}

// mistyped is the end of a message about a call with arguments of the wrong type: what is mostly meant, or
// empty.
func mistyped(message string, details []string) string {
	switch text := slices.ContainsFunc(details, func(line string) bool {
		return strings.HasPrefix(line, "have:") && strings.Contains(line, "string")
	}); {
	case text && strings.HasPrefix(message, "time."):
		return "; time.parse_rfc3339_ns(input.time) makes the text of a time the number that this takes"
	case text && strings.HasPrefix(message, "plus:"):
		return "; texts are joined by sprintf or concat"
	}
	return ""
}

// follows reports whether a syntax error only says what the one before it says.
func follows(e, before *ast.Error) bool {
	if e.Code != ast.ParseErr || before.Code != ast.ParseErr || Position(e.Location).Line != Position(before.Location).Line {
		return false
	}
	return e.Message == "illegal token" || strings.HasPrefix(e.Message, "rule name conflicts") ||
		strings.HasSuffix(e.Message, "cannot be used for rule name")
}

// misread is the end of a message about a syntax error: what Rego has for what the line has from other
// languages.
func misread(e *ast.Error) string {
	if strings.HasSuffix(e.Message, "cannot be used for rule name") {
		return ": the rule ends in front of this; conditions are on lines of their own in { }, and there is no `and`, `is`, `when` or `unless`"
	}
	if e.Message == "package expected" {
		return "; begin the file with the decision point of its rules, such as `package catalogd.call`, or, of helpers, " +
			"with `package catalogd.lib.NAME`"
	}
	detail, ok := e.Details.(*ast.ParserErrorDetail)
	if !ok || detail.Idx < 0 || detail.Idx > len(detail.Line) {
		return ""
	}
	before, rest := detail.Line[:detail.Idx], detail.Line[detail.Idx:]
	has := func(prefixes ...string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(rest, p) })
	}
	word, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	switch {
	case has("'"):
		return `: texts are in double quotes ("...")`
	case has("\u201c", "\u201d", "\u2018", "\u2019"):
		return `: typographic quotes; texts are in straight double quotes ("...")`
	case has("!") && !has("!="):
		return ": Rego negates with `not`"
	case has("&"):
		return ": conditions are on lines of their own in { }, or separated by ;, and all of them must hold"
	case has("|") || word == "or":
		return ": for one of several write a rule for each, or `x in {...}`"
	case word == "and":
		return ": conditions are on lines of their own in { }, or separated by ;, and all of them must hold"
	case word == "in" && strings.HasSuffix(before, "not "):
		return ": write `not x in xs`"
	case word == "if":
		return ": a rule has one `if`, between its head and its conditions"
	case has("?"):
		return ": Rego has no ?:, write a rule for each case"
	case has(","):
		return ": conditions are on lines of their own in { }, or separated by ;"
	case strings.HasSuffix(strings.TrimSpace(before), "for"):
		return ": write `some x in xs`, or `every x in xs { ... }`"
	case has("=") && strings.Contains(detail.Line, "==="):
		return ": equality is =="
	case has(";"):
		return ": no ; at the end of a rule"
	}
	return ""
}
