package source

import (
	"bytes"
	"errors"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/util"
	"go.yaml.in/yaml/v3"

	"github.com/catalogd/catalogd/problem"
)

// Data is the policy's data: the content of every data file, at the path of its folder, and the positions of
// all keys.
type Data struct {
	Value map[string]any
	at    map[string]problem.Position
}

func newDocument() *Data {
	return &Data{Value: map[string]any{}, at: map[string]problem.Position{}}
}

// Position is where the value at the path of keys is written; the zero Position where no file has it.
func (d *Data) Position(keys ...string) problem.Position { return d.at[joinKeys(keys)] }

// Nearest is the position of the value at the path of keys, or of the closest one above it.
func (d *Data) Nearest(keys []string) problem.Position {
	for ; len(keys) > 0; keys = keys[:len(keys)-1] {
		if pos := d.Position(keys...); pos.IsValid() {
			return pos
		}
	}
	return problem.Position{File: Root}
}

// WithValue returns other data with the positions of d.
func (d *Data) WithValue(value map[string]any) *Data { return &Data{Value: value, at: d.at} }

func joinKeys(keys []string) string { return strings.Join(keys, "\x00") }

// add merges a data file. policy/trust/data.yaml is data.trust.
func (d *Data) add(file string, content []byte) problem.List {
	var problems problem.List
	here := problem.Position{File: file}
	base, folder := path.Base(file), strings.TrimPrefix(strings.TrimPrefix(path.Dir(file), Root), "/")
	if !slices.Contains([]string{"data.yaml", "data.yml", "data.json"}, base) {
		problems.Errorf(problem.PolicyData, here, "",
			"data files are called data.yaml, data.yml or data.json, and their folder determines the path of their data: rename it, or move it out of policy/")
		return problems
	}
	var keys []string
	if folder != "" {
		keys = strings.Split(folder, "/")
	}
	node, err := oneNode(content)
	if err != nil {
		var message string
		here.Line, message = explainYAML(err, content)
		problems.Errorf(problem.PolicyData, here, Path(keys), "%s", message)
		return problems
	}
	if node.Kind != yaml.MappingNode {
		problems.Errorf(problem.PolicyData, at(file, node), Path(keys), "a data file holds one mapping of keys to values")
		return problems
	}
	problems = append(problems, repeatedKeys(file, keys, node)...)
	if problems.HasErrors() {
		return problems
	}
	var value map[string]any
	if err := util.Unmarshal(content, &value); err != nil { // as stock OPA reads it
		problems.Errorf(problem.PolicyData, here, Path(keys), "%v", err)
		return problems
	}
	for i := len(keys) - 1; i >= 0; i-- {
		value = map[string]any{keys[i]: value}
	}
	if _, taken := value["catalogd"]; taken {
		problems.Errorf(problem.PolicyData, at(file, node), "data.catalogd", "data.catalogd is where the policy's packages stand: use another name")
		return problems
	}
	found := map[string]problem.Position{}
	for i := range keys {
		found[joinKeys(keys[:i+1])] = at(file, node)
	}
	recordKeys(found, file, keys, node)
	problems = append(problems, d.merge(d.Value, value, nil, found)...)
	for key, pos := range found {
		if _, ok := d.at[key]; !ok {
			d.at[key] = pos
		}
	}
	return problems
}

// merge adds from to into, recursively where both have a mapping; any other key that both have is a conflict.
func (d *Data) merge(into, from map[string]any, keys []string, found map[string]problem.Position) problem.List {
	var problems problem.List
	for _, key := range SortedKeys(from) {
		below := append(slices.Clone(keys), key)
		old, taken := into[key]
		if !taken {
			into[key] = from[key]
			continue
		}
		oldMap, ok1 := old.(map[string]any)
		newMap, ok2 := from[key].(map[string]any)
		if ok1 && ok2 {
			problems = append(problems, d.merge(oldMap, newMap, below, found)...)
			continue
		}
		problems = append(problems, problem.Problem{
			Code: problem.PolicyData, Severity: problem.Error, Position: found[joinKeys(below)], Path: Path(below),
			Message: "duplicate value in two data files: keep one", Also: []problem.Position{d.Position(below...)},
		})
	}
	return problems
}

// oneNode parses exactly one YAML (or JSON) document.
func oneNode(content []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	var doc yaml.Node
	if err := decoder.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("the file is empty: write {} or remove it")
		}
		return nil, err
	}
	if err := decoder.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil, errors.New("the file holds more than one document, and only the first would count: remove the `---`")
	}
	return doc.Content[0], nil
}

// repeatedKeys reports duplicate keys in mappings.
func repeatedKeys(file string, keys []string, node *yaml.Node) problem.List {
	var problems problem.List
	if node.Kind == yaml.MappingNode {
		seen := map[string]*yaml.Node{}
		for i := 0; i+1 < len(node.Content); i += 2 {
			key := node.Content[i]
			if first := seen[key.Value]; first != nil {
				problems = append(problems, problem.Problem{
					Code: problem.PolicyData, Severity: problem.Error, Position: at(file, key),
					Path:    Path(append(slices.Clone(keys), key.Value)),
					Message: "duplicate key: keep one", Also: []problem.Position{at(file, first)},
				})
			}
			seen[key.Value] = key
		}
	}
	for i, child := range node.Content {
		below := keys
		if node.Kind == yaml.MappingNode && i%2 == 1 {
			below = append(slices.Clone(keys), node.Content[i-1].Value)
		}
		problems = append(problems, repeatedKeys(file, below, child)...)
	}
	return problems
}

// recordKeys records the positions of every key of node's mappings and of every element of its lists, by
// index.
func recordKeys(found map[string]problem.Position, file string, keys []string, node *yaml.Node) {
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			below := append(slices.Clone(keys), node.Content[i].Value)
			found[joinKeys(below)] = at(file, node.Content[i])
			recordKeys(found, file, below, node.Content[i+1])
		}
	case yaml.SequenceNode:
		for i, elem := range node.Content {
			below := append(slices.Clone(keys), strconv.Itoa(i))
			found[joinKeys(below)] = at(file, elem)
			recordKeys(found, file, below, elem)
		}
	}
}

func at(file string, node *yaml.Node) problem.Position {
	return problem.Position{File: file, Line: node.Line, Col: node.Column}
}

// Path writes keys below data as a path: data.trust.entries.
func Path(keys []string) string {
	return strings.Join(append([]string{"data"}, keys...), ".")
}

// Exists reports whether there is data at the path, for OPA's check that rules don't hide data.
func (d *Data) Exists(path []string) (bool, error) {
	var value any = d.Value
	for _, key := range path {
		object, ok := value.(map[string]any)
		if !ok {
			return false, nil
		}
		if value, ok = object[key]; !ok {
			return false, nil
		}
	}
	return true, nil
}
