package decision

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/catalogd/catalogd/problem"
)

// Fact is a part of the input that a rule read.
type Fact struct {
	// Path is the part as a rule writes it: input.tool.effect.
	Path string `json:"path"`
	// Value is its JSON; null also where the input has no such part.
	Value json.RawMessage `json:"value"`
}

// longestFact is how many bytes of a value are shown to people.
const longestFact = 200

func (f Fact) String() string {
	value := string(f.Value)
	if len(value) > longestFact {
		value = strings.ToValidUTF8(value[:longestFact], "") + "..."
	}
	return f.Path + " = " + problem.Printable(value)
}

// recordInputs records the parts of the input that an evaluated rule mentions.
func (w *explainTracer) recordInputs(rule *ast.Rule) {
	if w.entered[rule] {
		return
	}
	w.entered[rule] = true
	for _, ref := range mentioned(rule) {
		w.parts[ref.String()] = ref
	}
}

// mentioned are the parts of the input that a rule mentions by name.
func mentioned(rule *ast.Rule) (parts []ast.Ref) {
	ast.WalkRefs(rule, func(ref ast.Ref) bool {
		if ref[0].Value.Compare(ast.InputRootDocument.Value) == 0 {
			end := 1
			for end < len(ref) {
				if _, ok := ref[end].Value.(ast.String); !ok {
					break
				}
				end++
			}
			if end > 1 {
				parts = append(parts, ref[:end])
			}
		}
		return false
	})
	return parts
}

// FactsOf are the parts of an input that the rules of this explanation read, sorted by path; a part of a part
// that is listed is left out. The input may be a copy of the original with secrets replaced.
func (x Explanation) FactsOf(input any) ([]Fact, error) {
	spec, _ := specOf(x.Decision.Point)
	document, err := spec.input.Value(reflect.ValueOf(input))
	if err != nil {
		return nil, fmt.Errorf("reading the input: %w", err)
	}
	facts := []Fact{}
	for _, part := range x.parts {
		path := part.String()
		if slices.ContainsFunc(facts, func(f Fact) bool { return strings.HasPrefix(path, f.Path+".") || strings.HasPrefix(path, f.Path+"[") }) {
			continue
		}
		fact := Fact{Path: path, Value: json.RawMessage("null")}
		if value, err := document.Value.Find(part[1:]); err == nil { // else the input has no such part
			if fact.Value, err = factValue(value); err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
		}
		facts = append(facts, fact)
	}
	return facts, nil
}

func factValue(value ast.Value) (json.RawMessage, error) {
	data, err := ast.JSON(value)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(data); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// facts are the recorded parts, sorted.
func (w *explainTracer) facts() (parts []ast.Ref) {
	for _, ref := range w.parts {
		parts = append(parts, ref)
	}
	slices.SortFunc(parts, func(a, b ast.Ref) int { return strings.Compare(a.String(), b.String()) })
	return parts
}
