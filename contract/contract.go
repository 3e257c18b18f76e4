package contract

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Contract is a compiled Spec. It is immutable and safe for concurrent use.
type Contract struct {
	spec Spec
	rest Rest
	// compiled compiles the schema once: in New if it may fail, else in the first Check.
	compiled func() (*compiled, error)
	// behind is set for a narrowed Spec.
	behind *behind
	// spare has further compiled contracts, if one can serve only one check at a time (take).
	spare sync.Pool
}

type compiled struct {
	shape     *shape
	secrets   bool
	validator *jsonschema.Schema
	fastPath  *fastPath
	// watch is set if a pattern backtracks; then a compiled contract serves only one check at a time.
	watch *stopwatch
}

// Rest checks with CUE the constraints that a contract's schema can't express. args is one JSON object that
// the schema accepts, with defaults filled in; filled is the same object with the computed arguments. found
// has all violations. An error means that there is no decision, because the check exceeded its time limit or
// could not run. A Rest must be safe for concurrent use.
type Rest func(ctx context.Context, args json.RawMessage) (filled json.RawMessage, found []Violation, err error)

// New makes a contract from a Spec. If the Spec has a Remainder, rest is needed; without it every Check
// fails. New uses no files and no network. It returns an error if the Spec is inconsistent, which a build of
// a catalog never is, or if the schema of an upstream server can't be checked.
func New(spec Spec, rest Rest) (*Contract, error) {
	read, err := decodeOrdered(spec.Schema)
	if err != nil {
		return nil, fmt.Errorf("contract: schema: %w", err)
	}
	doc := unordered(read)
	object, ok := doc.(map[string]any)
	switch {
	case spec.Value:
		plain := spec.Upstream && spec.NoFill && spec.Strictness == Open && !spec.Coerce
		if !plain || len(spec.Fields) > 0 || spec.Remainder != nil {
			return nil, errors.New("contract: Spec.Value needs Upstream, NoFill and Open, without Coerce, Fields and Remainder")
		}
	case !ok || object["type"] != "object":
		return nil, errors.New(`contract: schema: its type must be "object"`)
	default:
		if err := spec.agrees(object); err != nil {
			return nil, fmt.Errorf("contract: %w", err)
		}
	}
	if spec.Upstream {
		latest, err := convert(read)
		if err != nil {
			return nil, fmt.Errorf("contract: schema: %w", err)
		}
		doc = unordered(latest)
		top, _ := doc.(map[string]any)
		if spec.Strictness != Open && top["additionalProperties"] != false {
			return nil, fmt.Errorf("contract: schema: strictness %s needs a top level that can be closed, but it is a $ref, "+
				"beside which other keywords are ignored", spec.Strictness)
		}
	}
	if err := checkCost(doc); err != nil {
		return nil, fmt.Errorf("contract: schema: %w", err)
	}
	c := &Contract{spec: spec.Clone(), rest: rest}
	if spec.Narrowed != nil {
		if c.behind, err = newBehind(c.spec, rest); err != nil {
			return nil, err
		}
	}
	c.compiled = sync.OnceValues(c.compile)
	if !plain(doc, spec.Upstream) {
		if _, err := c.compiled(); err != nil {
			return nil, fmt.Errorf("contract: schema: %w", err)
		}
	}
	return c, nil
}

// agrees checks that the schema, which is advertised, agrees with Strictness and Fields, which are enforced.
func (s Spec) agrees(schema map[string]any) error {
	extra := schema["additionalProperties"]
	switch s.Strictness {
	case Closed, Exact:
		if extra != false && s.Remainder == nil { // with a Remainder, CUE checks the names
			return fmt.Errorf("strictness %s needs additionalProperties false", s.Strictness)
		}
	case Open:
		if extra == false {
			return errors.New("strictness open contradicts additionalProperties false")
		}
	default:
		return fmt.Errorf("strictness %q is not closed, exact or open", s.Strictness)
	}
	properties, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	advertised := len(s.Fields)
	for _, f := range s.Fields {
		if f.Computed && !takesNothing(properties[f.Name]) {
			advertised--
		}
	}
	if advertised != len(properties) {
		return fmt.Errorf("%d fields for %d properties", advertised, len(properties))
	}
	for _, f := range s.Fields {
		if s.NoFill && f.Default != nil {
			return fmt.Errorf("field %q has a default, but the contract has NoFill", f.Name)
		}
		if f.Computed {
			if p, ok := properties[f.Name]; ok && !takesNothing(p) || s.Remainder == nil {
				return fmt.Errorf("field %q is computed: it must not be a property that accepts a value, and needs a remainder", f.Name)
			}
			continue
		}
		if _, ok := properties[f.Name]; !ok {
			return fmt.Errorf("field %q is not a property of the schema", f.Name)
		}
		if f.Required != slices.Contains(required, any(f.Name)) {
			return fmt.Errorf("field %q: the schema differs on whether it is required", f.Name)
		}
		if s.Strictness == Exact && !f.Required {
			return fmt.Errorf("strictness exact with an argument that is not required: %q", f.Name)
		}
	}
	if len(s.Losses) > 0 && s.Remainder == nil && s.Narrowed == nil {
		return errors.New("the contract has losses, but no remainder that enforces them")
	}
	return nil
}

// takesNothing reports whether a property's schema is {"not": {}}, which accepts no value.
func takesNothing(property any) bool {
	m, _ := property.(map[string]any)
	not, ok := m["not"].(map[string]any)
	return ok && len(m) == 1 && len(not) == 0
}

// sealed is a URL loader that loads nothing.
type sealed struct{}

func (sealed) Load(url string) (any, error) {
	return nil, fmt.Errorf("a contract's schema can't refer to %s", url)
}

// newCompiler returns a compiler for schemas of draft 2020-12, for checking and for comparing contracts. In
// the schema of an upstream server, format and content keywords are only annotations.
func newCompiler(upstream bool, patterns *engine) *jsonschema.Compiler {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(sealed{})
	c.UseRegexpEngine(patterns.compile)
	if upstream {
		return c
	}
	c.AssertFormat()
	for _, f := range ownFormats() {
		c.RegisterFormat(f)
	}
	c.AssertContent()
	c.RegisterContentEncoding(base64Content())
	return c
}

func (c *Contract) compile() (*compiled, error) {
	document, err := c.spec.Document()
	if err != nil {
		return nil, err
	}
	v, err := compileDocument(document, c.spec.Upstream)
	if err != nil {
		return nil, err
	}
	use := v.compiled
	for _, f := range c.spec.Fields {
		if p := use.shape.properties[f.Name]; p != nil && f.Secret {
			p.secret, use.secrets = true, true
		}
	}
	use.fastPath = readFastPath(document, c.spec.Upstream)
	return use, nil
}

// take returns a compiled contract for one check; give returns it.
func (c *Contract) take() (*compiled, error) {
	use, err := c.compiled()
	if err != nil || use.watch == nil {
		return use, err
	}
	use, _ = c.spare.Get().(*compiled)
	if use == nil {
		if use, err = c.compile(); err != nil {
			return nil, err
		}
	}
	use.watch.reset()
	return use, nil
}

func (c *Contract) give(use *compiled) {
	if use != nil && use.watch != nil {
		c.spare.Put(use)
	}
}

// Spec returns a copy of the Spec.
func (c *Contract) Spec() Spec { return c.spec.Clone() }

// Check checks the arguments of a call, a JSON object; empty raw means {}. It returns Args, with every
// default (unless NoFill is set) and every computed argument filled in, or all violations, sorted by pointer,
// at most 100.
//
// Violations come from the first of three steps that finds any: decoding (broken JSON, duplicate keys,
// numbers out of range), the schema, and CUE. An error means that there is no decision, because the check by
// CUE could not run or exceeded its time limit, or because matching a pattern took too long; the call must
// not run. ctx limits only the check by CUE.
func (c *Contract) Check(ctx context.Context, raw json.RawMessage) (Args, []Violation, error) {
	args, found, err := c.checkSchema(raw)
	if err == nil && found == nil && c.behind != nil {
		return c.checkBehind(ctx, args)
	}
	if err != nil || found != nil || c.spec.Remainder == nil {
		return args, found, err
	}
	if c.rest == nil {
		return Args{}, nil, errors.New("the arguments need a check by CUE, which is not available here")
	}
	filled, found, err := c.rest(ctx, args.JSON())
	if err != nil || found != nil {
		return Args{}, c.redactViolations(sorted(found), args.object), err
	}
	v, broken := decode(filled)
	object, ok := v.(map[string]any)
	for i := range broken { // such as a number that is too large
		broken[i].Got, broken[i].Expected = "nothing", "arguments of which CUE computes "+broken[i].Expected
	}
	if ok && len(broken) > 0 {
		return Args{}, c.redactViolations(sorted(broken), args.object), nil
	}
	if !ok {
		return Args{}, nil, errors.New("the check by CUE returned a value that is not an object")
	}
	return Args{raw: appendJSON(make([]byte, 0, len(filled)), object), object: object}, nil, nil
}

func (c *Contract) checkSchema(raw json.RawMessage) (Args, []Violation, error) {
	use, err := c.take()
	if err != nil { // fail closed: the function plain took the schema for one that always compiles
		return Args{}, []Violation{{Got: "a call", Expected: "a tool whose schema compiles: " + err.Error()}}, nil
	}
	defer c.give(use)
	args, found := c.checkWith(use, raw)
	if use.watch != nil && use.watch.out {
		return Args{}, nil, tooSlow{}
	}
	return args, found, nil
}

func (c *Contract) checkWith(use *compiled, raw json.RawMessage) (Args, []Violation) {
	if c.spec.Value {
		return c.checkValue(use, raw)
	}
	object := map[string]any{}
	if len(bytes.TrimSpace(raw)) > 0 {
		v, found := decode(raw)
		if len(found) > 0 {
			return Args{}, c.redactViolations(sorted(found), nil)
		}
		m, ok := v.(map[string]any)
		if !ok {
			got := describe(v)
			if use.secrets {
				got = describeSecret(v)
			}
			return Args{}, []Violation{{Got: got, Expected: "an object of arguments by name"}}
		}
		object = m
	}
	brought := c.computed(object)
	w := &work{left: maxWork}
	if c.spec.Coerce {
		coerce(object, []*shape{use.shape}, w)
	}
	var fixed []Violation
	if c.behind != nil {
		fixed = c.behind.sent(object, func(path []string) []string {
			here, _ := use.shape.at(object, path)
			return declared(here)
		})
		c.behind.fills.defaults(object)
	}
	if !c.spec.NoFill {
		w.numbers = c.spec.Remainder != nil // CUE fills in the defaults
		use.shape.fill(object, w)
	}
	if use.shape.multiplies {
		w.spend(use.shape.cost(object, max(w.left, 0)+1))
	}
	if w.spent() {
		return Args{}, tooCostly()
	}
	if brought != nil || !use.fastPath.accepts(object) {
		if err := use.validator.Validate(object); err != nil || brought != nil {
			return Args{}, c.alsoFixed(use.explain(object, brought, err), fixed, object)
		}
	}
	if fixed != nil {
		return Args{}, fixed
	}
	return Args{raw: appendJSON(make([]byte, 0, len(raw)+64), object), object: object}, nil
}

// checkValue checks a result of any JSON type. Its Args have an object only if the result is one.
func (c *Contract) checkValue(use *compiled, raw json.RawMessage) (Args, []Violation) {
	v, found := decode(raw)
	if len(found) > 0 {
		return Args{}, c.redactViolations(sorted(found), nil)
	}
	w := &work{left: maxWork}
	if use.shape.multiplies {
		w.spend(use.shape.cost(v, w.left+1))
	}
	if w.spent() {
		return Args{}, tooCostly()
	}
	if err := use.validator.Validate(v); err != nil {
		return Args{}, use.explain(v, nil, err)
	}
	object, _ := v.(map[string]any)
	return Args{raw: appendJSON(make([]byte, 0, len(raw)), v), object: object}, nil
}

// computed returns violations for computed arguments that the call contains.
func (c *Contract) computed(object map[string]any) (found []Violation) {
	for _, f := range c.spec.Fields {
		if _, ok := object[f.Name]; ok && f.Computed {
			found = append(found, Violation{
				Pointer: "/" + escapePointer(f.Name), Got: "a value for a computed argument",
				Expected: "it to be left out: it is computed from the other arguments",
			})
		}
	}
	return found
}

func (c *compiled) explain(value any, brought []Violation, err error) []Violation {
	e := explainer{root: c.shape, top: c.shape, value: value, secrets: c.secrets, seen: map[string]bool{}, located: map[string]*shape{}}
	for _, v := range brought {
		e.add(v)
	}
	var invalid *jsonschema.ValidationError
	if errors.As(err, &invalid) {
		e.walk(invalid)
	}
	if len(e.found) == 0 { // an error of the validator must not become an acceptance
		return []Violation{{Got: describe(value), Expected: "arguments that the schema accepts"}}
	}
	return sorted(e.found)
}
