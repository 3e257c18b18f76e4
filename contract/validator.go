package contract

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Document returns Schema decoded as Args.Object describes and converted to draft 2020-12. The error says why
// it can't be read.
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

// Validator applies the schema of a Spec as Check does, and also single subschemas. It is for comparing
// contracts (contract/compat) and ignores Strictness, Coerce and Remainder. It is not safe for concurrent
// use. The total time of backtracking patterns is limited over its lifetime; when it is used up, Decided is
// false.
type Validator struct {
	*compiled
	compiler   *jsonschema.Compiler
	patterns   *engine
	fill       bool
	subschemas map[string]*jsonschema.Schema // by pointer
}

// maxFill is the maximum number of subschemas visited to fill in the defaults of one value.
const maxFill = 50_000

// documentName is the URL of the schema in the compiler.
const documentName = "contract:args"

// Validator compiles the schema of s. It uses only Schema, Upstream and NoFill.
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

// Check returns the violations of a decoded value, after filling in defaults unless NoFill is set. It doesn't
// change the value. decided is false if the check would cost too much.
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

// Valid reports whether the subschema at a JSON pointer accepts a decoded value, without filling in defaults.
// decided is false if matching patterns took too long, or if there is no valid subschema at the pointer.
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

// Matcher compiles a pattern of the schema. The returned function reports whether a text has a match; its
// answer is valid only while Decided is true.
func (v *Validator) Matcher(pattern string) (func(text string) bool, error) {
	re, err := v.patterns.compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("patternProperties: %w", err)
	}
	return re.MatchString, nil
}

// Decided reports whether the time for matching patterns is not used up. Once it is, in any check of this
// validator, matchers report a match for every text.
func (v *Validator) Decided() bool { return v.patterns.watch == nil || !v.patterns.watch.out }
