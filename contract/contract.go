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
	// compiled is the work of the first Check where the schema is plain, and of New where it is not.
	compiled func() (*compiled, error)
	// spare are compiled contracts for checks that run at the same time, where one serves a single check
	// (take).
	spare sync.Pool
}

type compiled struct {
	shape     *shape
	secrets   bool
	validator *jsonschema.Schema
	fastPath  *fastPath
	// watch is set where a pattern backtracks: such a compiled contract serves one check at a time.
	watch *stopwatch
}

// Rest has CUE check what the schema of one contract can't say. args is one JSON object that the schema
// accepts, defaults filled in; filled is the same with the computed arguments. found says all that is wrong
// with it. An error means that nothing was decided: the check did not end in time, or could not run. It is
// safe for concurrent use.
type Rest func(ctx context.Context, args json.RawMessage) (filled json.RawMessage, found []Violation, err error)

// New compiles a Spec. rest is needed where the Spec has a Remainder; without one, every Check of such a
// contract fails. It reaches no file and no network. An error means that the Spec contradicts itself, which
// no catalog file can bring about, or that the schema of an upstream server can't be checked.
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
			return nil, errors.New("contract: only the result of an upstream server is of any value, and stays as it is")
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
			return nil, fmt.Errorf("contract: schema: strictness %s needs a top that can be closed, and it is a $ref "+
				"beside which nothing counts", spec.Strictness)
		}
	}
	if err := checkCost(doc); err != nil {
		return nil, fmt.Errorf("contract: schema: %w", err)
	}
	c := &Contract{spec: spec.Clone(), rest: rest}
	c.compiled = sync.OnceValues(c.compile)
	if !plain(doc, spec.Upstream) {
		if _, err := c.compiled(); err != nil {
			return nil, fmt.Errorf("contract: schema: %w", err)
		}
	}
	return c, nil
}

// agrees checks that the schema says what Strictness and Fields say, so that what is advertised is what
// holds.
func (s Spec) agrees(schema map[string]any) error {
	extra := schema["additionalProperties"]
	switch s.Strictness {
	case Closed, Exact:
		if extra != false && s.Remainder == nil { // CUE alone may know which names there are
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
			return fmt.Errorf("field %q has a default in a contract that fills in nothing", f.Name)
		}
		if f.Computed {
			if p, ok := properties[f.Name]; ok && !takesNothing(p) || s.Remainder == nil {
				return fmt.Errorf("field %q is computed: it must be no property that takes a value, and needs a remainder", f.Name)
			}
			continue
		}
		if _, ok := properties[f.Name]; !ok {
			return fmt.Errorf("field %q is no property", f.Name)
		}
		if f.Required != slices.Contains(required, any(f.Name)) {
			return fmt.Errorf("field %q: the schema differs on whether it is required", f.Name)
		}
		if s.Strictness == Exact && !f.Required {
			return fmt.Errorf("strictness exact with an argument that is not required: %q", f.Name)
		}
	}
	if len(s.Losses) > 0 && s.Remainder == nil {
		return errors.New("losses without a remainder that enforces them")
	}
	return nil
}

// takesNothing reports whether a property is one that takes no value: {"not": {}}.
func takesNothing(property any) bool {
	m, _ := property.(map[string]any)
	not, ok := m["not"].(map[string]any)
	return ok && len(m) == 1 && len(not) == 0
}

// sealed is the loader of a compiler that may load nothing.
type sealed struct{}

func (sealed) Load(url string) (any, error) {
	return nil, fmt.Errorf("a contract's schema can't refer to %s", url)
}

// newCompiler is the one kind of validator that contracts are checked and compared by. What it compiles is of
// draft 2020-12; of an upstream server's, format and content are annotations.
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
	document, err := c.spec.Document() // New has read it before
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

// take is the compiled contract for one check, which gives it back.
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

// Spec is a copy of what the contract was made from.
func (c *Contract) Spec() Spec { return c.spec.Clone() }

// Check decides whether raw are arguments that the contract accepts; no bytes at all are {}. It answers Args
// with every default (but for NoFill) and every computed argument filled in, or what is wrong with them: all
// of it at once, sorted by pointer, the first 100 of more. Broken JSON, a duplicate key or an impossible
// number is reported before anything that the schema has to say, and what the schema has to say before what CUE
// has. An error means that nothing was decided, because CUE could not be asked or did not answer in time, or
// a pattern took too long to match: the call must not run. ctx bounds the asking of CUE, and nothing else
// waits.
func (c *Contract) Check(ctx context.Context, raw json.RawMessage) (Args, []Violation, error) {
	args, found, err := c.checkSchema(raw)
	if err != nil || found != nil || c.spec.Remainder == nil {
		return args, found, err
	}
	if c.rest == nil {
		return Args{}, nil, errors.New("the arguments need a check by CUE, and nothing here can run it")
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
		return Args{}, nil, errors.New("the check by CUE answered what are no arguments")
	}
	return Args{raw: appendJSON(make([]byte, 0, len(filled)), object), object: object}, nil, nil
}

func (c *Contract) checkSchema(raw json.RawMessage) (Args, []Violation, error) {
	use, err := c.take()
	if err != nil { // fail closed; New would have said so but for a mistake in plain
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
	if !c.spec.NoFill {
		w.numbers = c.spec.Remainder != nil // CUE fills in, from what the call sent
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
			return Args{}, use.explain(object, brought, err)
		}
	}
	return Args{raw: appendJSON(make([]byte, 0, len(raw)+64), object), object: object}, nil
}

// checkValue checks a result of any kind. Its Args have an object only where it is one.
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

// computed tells of the arguments that CUE fills in and the call brings all the same.
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
	if len(e.found) == 0 { // nothing that the validator says may become an acceptance
		return []Violation{{Got: describe(value), Expected: "arguments that the schema accepts"}}
	}
	return sorted(e.found)
}
