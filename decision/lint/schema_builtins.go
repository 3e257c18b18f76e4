package lint

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/catalogd/catalogd/decision/internal/source"
	"github.com/catalogd/catalogd/problem"
)

// SchemaBuiltins are the built-ins that take a JSON Schema as their last argument.
var SchemaBuiltins = []string{ast.JSONMatchSchema.Name, ast.JSONSchemaVerify.Name}

// maxSchema bounds the values of a schema with all that it refers to.
const maxSchema = 10_000

// SchemaTermSize is the size of a schema, a term or the text of one: it counts the values, and those that it
// refers to as often as it does. The error says why the schema may not be used: it refers to anything but a
// part of itself, recursively, or is too large.
func SchemaTermSize(t *ast.Term) (int, error) {
	schema, err := ast.JSON(t.Value)
	if err != nil {
		return 0, errors.New("the schema is not JSON")
	}
	return schemaNodes(schema)
}

// schemaNodes is SchemaTermSize of decoded JSON.
func schemaNodes(root any) (int, error) {
	if text, ok := root.(string); ok {
		if err := json.Unmarshal([]byte(text), &root); err != nil {
			return 0, errors.New("the schema is not JSON")
		}
	}
	c := schemaCounter{root: root, sizes: map[string]int{}}
	return c.count(root)
}

type schemaCounter struct {
	root  any
	sizes map[string]int // by reference; 0 while it is being counted
}

func (c *schemaCounter) count(node any) (int, error) {
	n := 1
	add := func(child any) error {
		size, err := c.count(child)
		if n += size; err == nil && n > maxSchema {
			return fmt.Errorf("the schema has more than %d values with what it refers to", maxSchema)
		}
		return err
	}
	switch v := node.(type) {
	case []any:
		for _, child := range v {
			if err := add(child); err != nil {
				return 0, err
			}
		}
	case map[string]any:
		for _, key := range source.SortedKeys(v) {
			text, isText := v[key].(string)
			switch {
			case !isText:
				if err := add(v[key]); err != nil {
					return 0, err
				}
			case slices.Contains([]string{"id", "$id", "$ref", "$dynamicRef", "$recursiveRef"}, key):
				size, err := c.refer(key, text)
				if n += size; err != nil {
					return 0, err
				}
			case key == "$schema" && !strings.HasPrefix(text, "http://json-schema.org/") && !strings.HasPrefix(text, "https://json-schema.org/"):
				return 0, fmt.Errorf("the schema's $schema %q is not of json-schema.org", text)
			default:
				n++
			}
		}
	}
	return n, nil
}

// refer counts the target of a $ref.
func (c *schemaCounter) refer(key, text string) (int, error) {
	if key != "$ref" || !strings.HasPrefix(text, "#/") {
		return 0, fmt.Errorf("the schema has a %s %q: it may refer to its own parts only, as in {\"$ref\": \"#/definitions/name\"}", key, text)
	}
	if size, known := c.sizes[text]; known {
		if size == 0 {
			return 0, fmt.Errorf("the schema refers to itself in %s", text)
		}
		return size, nil
	}
	c.sizes[text] = 0
	target, ok := c.at(text)
	if !ok {
		return 0, fmt.Errorf("the schema has no %s", text)
	}
	size, err := c.count(target)
	if err == nil && size > maxSchema {
		err = fmt.Errorf("the schema has more than %d values with what it refers to", maxSchema)
	}
	c.sizes[text] = size
	return size, err
}

// at is the target of a reference such as #/definitions/a~1b.
func (c *schemaCounter) at(ref string) (node any, ok bool) {
	node = c.root
	for key := range strings.SplitSeq(ref[len("#/"):], "/") {
		key, err := url.PathUnescape(key)
		if err != nil {
			return nil, false
		}
		key = strings.NewReplacer("~1", "/", "~0", "~").Replace(key)
		switch v := node.(type) {
		case map[string]any:
			node, ok = v[key]
		case []any:
			i, err := strconv.Atoi(key)
			if ok = err == nil && i >= 0 && i < len(v); ok {
				node = v[i]
			}
		default:
			ok = false
		}
		if !ok {
			return nil, false
		}
	}
	return node, true
}

// SchemaArguments reports calls of SchemaBuiltins whose schema is not a constant of a module or of the data,
// or may not be used (SchemaTermSize).
func (p *Policy) SchemaArguments() (problems problem.List) {
	d := p.newDefinedness()
	d.each(func(sc *scope) {
		eachCall(sc.rule, func(terms []*ast.Term) {
			name := terms[0].String()
			if !slices.Contains(SchemaBuiltins, name) {
				return
			}
			arity := ast.BuiltinMap[name].Decl.Arity()
			if len(terms) <= arity {
				return // does not compile
			}
			d.budget = maxSteps
			found, _ := d.values(sc, terms[arity], nil, 0)
			for _, p := range found {
				if err := p.schema(); err != nil {
					problems.Errorf(problem.RegoBuiltin, source.Position(terms[0].Location), sc.pkg, "%s is not allowed: %v", name, err)
					return
				}
			}
		})
	})
	return problems
}

// schema says why a value may not be used as a schema.
func (p abstractValue) schema() (err error) {
	switch {
	case p.literal != nil && isConstant(p.literal):
		_, err = SchemaTermSize(p.literal)
	case p.data != nil:
		_, err = schemaNodes(p.data)
	default:
		err = errors.New("the schema must be an object that is written out in a module or in the policy's data")
	}
	return err
}

// isConstant reports whether a term has nothing to evaluate.
func isConstant(t *ast.Term) bool {
	constant := true
	ast.WalkTerms(t, func(part *ast.Term) bool {
		switch part.Value.(type) {
		case ast.Null, ast.Boolean, ast.Number, ast.String, *ast.Array, ast.Object:
		default:
			constant = false
		}
		return !constant
	})
	return constant
}
