package contract

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Document is Schema, decoded as Args.Object describes and converted to draft 2020-12: what a Validator
// applies. An error says why it can't be read.
func (s Spec) Document() (any, error) {
	if s.Upstream {
		document, err := latest(s.Schema)
		return unordered(document), err
	}
	document, found := decode(s.Schema)
	if len(found) > 0 {
		return nil, errors.New(found[0].String())
	}
	return document, nil
}

// Validator applies the schema of a Spec as Check does, and each of its subschemas alone. It is for comparing
// contracts (contract/compat): it knows neither Strictness nor Coerce nor Remainder. It serves one goroutine
// at a time, and matching patterns by backtracking is bounded over its lifetime: once that is used up, it
// decides nothing.
type Validator struct {
	*compiled
	compiler   *jsonschema.Compiler
	patterns   *engine
	fill       bool
	subschemas map[string]*jsonschema.Schema // by pointer
}

// maxFill bounds what filling in the defaults of one value by a Validator costs, in subschemas visited.
const maxFill = 50_000

// documentName is the URL by which a schema is compiled.
const documentName = "contract:args"

// Validator compiles the schema of s. It needs no more of s than Schema, Upstream and NoFill.
func (s Spec) Validator() (*Validator, error) {
	document, err := s.Document()
	if err != nil {
		return nil, err
	}
	top, _ := document.(map[string]any)
	if uri, ok := top["$schema"].(string); ok && draftURIs[strings.TrimPrefix(uri, "https://")] != draft2020 {
		return nil, errors.New("its dialect is not draft 2020-12")
	}
	if err := checkCost(document); err != nil {
		return nil, err
	}
	v, err := compileDocument(document, s.Upstream)
	if err != nil {
		return nil, err
	}
	v.fill = !s.NoFill
	return v, nil
}

func compileDocument(document any, upstream bool) (*Validator, error) {
	patterns := &engine{ecma: upstream}
	top, all, err := shapes(document, upstream, patterns)
	if err != nil {
		return nil, err
	}
	compiler := newCompiler(upstream, patterns)
	if err := compiler.AddResource(documentName, document); err != nil {
		return nil, err
	}
	schema, err := compiler.Compile(documentName)
	if err != nil {
		return nil, plainly(err)
	}
	top.link(schema)
	secrets := slices.ContainsFunc(all, func(s *shape) bool { return s.secret })
	return &Validator{
		compiled: &compiled{shape: top, secrets: secrets, validator: schema, watch: patterns.watch},
		compiler: compiler, patterns: patterns, subschemas: map[string]*jsonschema.Schema{},
	}, nil
}

// Check reports what is wrong with a decoded value once defaults are filled in, unless NoFill. It doesn't
// change the value. decided is false where checking would cost too much.
func (v *Validator) Check(value any) (found []Violation, decided bool) {
	if v.fill {
		w := &work{left: maxFill}
		if value = v.shape.fill(clone(value), w); w.spent() {
			return nil, false
		}
	}
	if err := v.validator.Validate(value); err != nil {
		found = v.explain(value, nil, err)
	}
	return found, v.Decided()
}

// Valid reports whether the subschema at a JSON pointer accepts a decoded value, in which no default is
// filled in. decided is false where matching patterns took too long.
func (v *Validator) Valid(pointer string, value any) (valid, decided bool) {
	schema := v.subschemas[pointer]
	if schema == nil {
		fragment := (&url.URL{Fragment: pointer}).EscapedFragment()
		var err error
		if schema, err = v.compiler.Compile(documentName + "#" + fragment); err != nil {
			return false, false
		}
		v.subschemas[pointer] = schema
	}
	valid = schema.Validate(value) == nil
	return valid, v.Decided()
}

// Matcher compiles a pattern of the schema. What it returns reports whether a text has a match,
// as long as the validator has Decided.
func (v *Validator) Matcher(pattern string) (func(text string) bool, error) {
	re, err := v.patterns.compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("patternProperties: %w", err)
	}
	return re.MatchString, nil
}

// Decided is false once matching patterns has taken too long, in this or an earlier check: matchers then
// report a match for every text.
func (v *Validator) Decided() bool { return v.patterns.watch == nil || !v.patterns.watch.out }
