package importer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/catalogd/catalogd/problem"
)

// maxNodes caps the values of a YAML file, with each alias counted as what it stands for.
const maxNodes = 100_000

// isYAML reports whether the text is read as YAML: whatever does not begin as JSON, or as a comment of it,
// does.
func isYAML(text []byte) bool {
	text = bytes.TrimLeft(text, " \t\r\n")
	return len(text) > 0 && bytes.IndexByte([]byte(`{["/`), text[0]) < 0
}

// yamlFile converts one file of YAML.
type yamlFile struct {
	file  string
	nodes int
}

var yamlLine = regexp.MustCompile(`line (\d+)`)

// parseYAML reads one document of YAML as strictly as JSON is read: duplicate keys, merge keys and a second
// document are refused. Errors name places, never values.
func parseYAML(file string, data []byte) (*value, error) {
	y := &yamlFile{file: file}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document yaml.Node
	err := decoder.Decode(&document)
	if errors.Is(err, io.EOF) {
		return nil, y.refused(&yaml.Node{Line: 1, Column: 1}, "the file has only comments")
	}
	if err != nil {
		at := &yaml.Node{Line: 1, Column: 1}
		// The error may repeat text of the file; its line is enough.
		if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
			if at.Line, err = strconv.Atoi(m[1]); err != nil {
				return nil, err
			}
		}
		return nil, y.refused(at, "neither JSON, which begins with {, nor valid YAML; fix the syntax here or just above")
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, y.refused(&document, "the file has several YAML documents; keep one")
	}
	return y.value(document.Content[0], 0)
}

func (y *yamlFile) refused(n *yaml.Node, message string) error {
	return &RefusedError{[]Note{{y.pos(n), "", message}}}
}

func (y *yamlFile) pos(n *yaml.Node) problem.Position {
	return problem.Position{File: y.file, Line: n.Line, Col: n.Column}
}

func (y *yamlFile) value(n *yaml.Node, depth int) (*value, error) {
	if y.nodes++; y.nodes > maxNodes {
		return nil, y.refused(n, fmt.Sprintf("the file has more than %d values, aliases counted as what they stand for", maxNodes))
	}
	if depth > maxDepth {
		return nil, y.refused(n, fmt.Sprintf("values are nested deeper than %d here", maxDepth))
	}
	v := &value{pos: y.pos(n)}
	switch n.Kind {
	case yaml.AliasNode:
		aliased, err := y.value(n.Alias, depth+1)
		if err != nil {
			return nil, err
		}
		aliased.pos = v.pos
		return aliased, nil
	case yaml.MappingNode:
		v.kind = object
		return v, y.members(v, n.Content, depth)
	case yaml.SequenceNode:
		v.kind = list
		for _, item := range n.Content {
			converted, err := y.value(item, depth+1)
			if err != nil {
				return nil, err
			}
			v.items = append(v.items, converted)
		}
		return v, nil
	}
	v.text = n.Value
	switch n.ShortTag() {
	case "!!null":
		v.kind, v.text = null, ""
	case "!!bool":
		var is bool
		if err := n.Decode(&is); err != nil {
			return nil, y.refused(n, "this is not true or false")
		}
		v.kind, v.text = boolean, strconv.FormatBool(is)
	case "!!int", "!!float":
		v.kind = number
	default:
		v.kind = text
	}
	return v, nil
}

func (y *yamlFile) members(v *value, content []*yaml.Node, depth int) error {
	first := map[string]int{}
	for i := 0; i+1 < len(content); i += 2 {
		key := content[i]
		switch {
		case key.Kind != yaml.ScalarNode:
			return y.refused(key, "a key must be a plain text")
		case key.ShortTag() == "!!merge":
			return y.refused(key, "merge keys (<<) are not read; write the fields out")
		case first[key.Value] > 0:
			return y.refused(key, fmt.Sprintf("duplicate key %q, first at line %d; remove one", shown(key.Value), first[key.Value]))
		}
		first[key.Value] = key.Line
		converted, err := y.value(content[i+1], depth+1)
		if err != nil {
			return err
		}
		v.members = append(v.members, member{key.Value, y.pos(key), converted})
	}
	return nil
}
