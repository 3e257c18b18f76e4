package source

import (
	"path"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/catalogd/catalogd/internal/secret"
	"github.com/catalogd/catalogd/problem"
)

// literalSecrets looks for secrets that a file of the policy writes out. The inputs of tests are made up, so
// that a name is no reason there.
func literalSecrets(file string, content []byte) (l problem.List) {
	report := func(found secret.Literal, ok bool, line, col int, keys []string) {
		if ok {
			l.Errorf(problem.LiteralSecret, problem.Position{File: file, Line: line, Col: col}, strings.Join(keys, "."),
				"a secret is written out (%s); remove it, and revoke it, because everybody who read the file has it", found.Shown())
		}
	}
	lines := func(look func(string) (secret.Literal, bool)) {
		n := 0
		for line := range strings.Lines(string(content)) {
			n++
			found, ok := look(line)
			report(found, ok, n, found.At+1, nil)
		}
	}
	node, err := oneNode(content)
	switch {
	case strings.HasSuffix(file, "_test.rego"):
		lines(secret.FindInText)
		return l
	case path.Ext(file) == ".rego" || err != nil:
		lines(secret.FindInLine)
		return l
	}
	walkLiterals(node, nil, "", report)
	return l
}

// walkLiterals looks at every text, key and comment of a data file; before is the item in front of it in a
// list.
func walkLiterals(n *yaml.Node, keys []string, before string, report func(found secret.Literal, ok bool, line, col int, keys []string)) {
	look := func(f secret.Literal, ok bool) { report(f, ok, n.Line, n.Column, keys) }
	for _, comment := range []string{n.HeadComment, n.LineComment, n.FootComment} {
		look(secret.FindInText(comment))
	}
	last := func(up int) string {
		if len(keys) < up {
			return ""
		}
		return keys[len(keys)-up]
	}
	switch n.Kind {
	case yaml.ScalarNode:
		switch {
		case last(1) == "command" || last(1) == "args":
			look(secret.FindInArgument(before, n.Value))
		case last(2) == "env" || last(2) == "headers":
			look(secret.FindInSetting(last(1), n.Value))
		default:
			look(secret.FindInField(last(1), n.Value))
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			found, ok := secret.FindInText(key.Value)
			report(found, ok, key.Line, key.Column, keys)
			below := append(keys[:len(keys):len(keys)], key.Value)
			if ok {
				below = keys
			}
			walkLiterals(n.Content[i+1], below, "", report)
		}
	default:
		for _, item := range n.Content {
			walkLiterals(item, keys, before, report)
			before = item.Value
		}
	}
}
