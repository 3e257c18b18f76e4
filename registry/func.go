package registry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/gotype"
)

// Function is a Go function that can be the binding of tools: a declaration in CUE names it (binding: func:
// "name") once catalogd.Config.Functions has it. It is no tool by itself. A Function is immutable and safe for
// concurrent use.
//
// Its JSON is its Descriptor. It can't be read back, because JSON has no executable: UnmarshalJSON is an error
// that says how to make one.
type Function struct {
	name, title, description string
	effect                   Effect
	input                    contract.Spec
	output                   *contract.Spec // nil if values of the output are no JSON objects
	produces                 *contract.Spec // every value of the output; nil if that is not known
	stated                   gotype.Stated
	run                      func(ctx context.Context, args json.RawMessage) (any, error)
	setup                    func(context.Context) error
	teardown                 func(context.Context) error
	standIn                  bool // it describes the function of another program

	mu      sync.Mutex
	users   int // catalogs that have set it up
	running int
	idle    chan struct{} // closed when running falls to 0; nil if nobody waits
}

// FuncOption is an option of Func. Read and Write are options.
type FuncOption interface{ apply(*Function) error }

type option func(*Function) error

func (o option) apply(f *Function) error { return o(f) }

func (e Effect) apply(f *Function) error {
	if e != Read && e != Write {
		return fmt.Errorf("the effect %q is neither read nor write", string(e))
	}
	if f.effect != "" {
		return errors.New("the effect is stated twice; keep registry.Read or registry.Write")
	}
	f.effect = e
	return nil
}

// Description describes the function for models, in place of the words of its name. The description in CUE
// takes precedence.
func Description(text string) FuncOption {
	return option(func(f *Function) error {
		if f.description = strings.TrimSpace(text); f.description == "" {
			return errors.New("the description is empty; say what the tool does and when to use it")
		}
		return nil
	})
}

// Title is a short name of the function for people.
func Title(text string) FuncOption {
	return option(func(f *Function) error { f.title = text; return nil })
}

// TypeSchema states the JSON Schema of a type that has a form of its own in JSON, such as one with an
// UnmarshalJSON method, wherever it occurs in the input or the output. For the input itself it is the tool's whole
// schema, of draft 2020-12, with type "object" and additionalProperties false, and advertised as it is.
func TypeSchema[T any](schema string) FuncOption {
	return option(func(f *Function) error { f.stated[reflect.TypeFor[T]()] = json.RawMessage(schema); return nil })
}

// Setup runs before the first catalog that has the function in its Config.Functions is built, and an error of it
// is an error of catalogd.New. It runs once for a catalog, whatever the number of its reloads.
func Setup(setup func(context.Context) error) FuncOption {
	return option(func(f *Function) error { f.setup = setup; return nil })
}

// Teardown runs when the last catalog that has the function is closed, after the function's running calls have
// ended or been given up (Function.TearDown).
func Teardown(teardown func(context.Context) error) FuncOption {
	return option(func(f *Function) error { f.teardown = teardown; return nil })
}

// Func makes a Function of fn. Its arguments are the fields of In, a struct, by their JSON names; docs/go.md says
// which types and tags a field may have, and what becomes of the output and of errors. One of Read and Write must
// be among the options.
//
// An empty name is that of the Go function in lower case with underscores, get_weather for GetWeather, and the
// description is by default the words of the name. The error names the field that can't be described.
//
// fn is called concurrently, with arguments that the contract has accepted, and must return soon after the end
// of its context. RunOf(ctx) has the idempotency key and the caller.
func Func[In, Out any](name string, fn func(context.Context, In) (Out, error), options ...FuncOption) (*Function, error) {
	if fn == nil {
		return nil, fmt.Errorf("function %q: there is no Go function (nil)", name)
	}
	if name == "" {
		if name = goName(fn); name == "" {
			return nil, errors.New("a function literal has no name; give one")
		}
	}
	f := &Function{name: name, stated: gotype.Stated{}}
	f.run = func(ctx context.Context, args json.RawMessage) (any, error) {
		var in In
		if err := gotype.Decode(args, &in); err != nil {
			return nil, &unreadable{err}
		}
		return fn(ctx, in)
	}
	if err := f.describe(reflect.TypeFor[In](), reflect.TypeFor[Out](), options); err != nil {
		return nil, fmt.Errorf("function %q: %w", name, err)
	}
	return f, nil
}

// describe applies the options and derives the schemas.
func (f *Function) describe(in, out reflect.Type, options []FuncOption) (err error) {
	if !ValidName(f.name) {
		return errors.New("the name is not valid; use a letter or _, then up to 62 letters, digits, _ or -")
	}
	for _, o := range options {
		if o == nil {
			return errors.New("an option is nil")
		}
		if err := o.apply(f); err != nil {
			return err
		}
	}
	if f.effect == "" {
		return errors.New("its effect is not stated; give registry.Read if it changes nothing, else registry.Write")
	}
	if f.description == "" {
		f.description = sentence(f.name)
	}
	if f.input, err = gotype.Input(in, f.stated); err != nil {
		return fmt.Errorf("its input: %w", err)
	}
	if out == reflect.TypeFor[*Result]() || out == reflect.TypeFor[Result]() {
		return nil
	}
	spec, ok, err := gotype.Output(out, f.stated)
	if err != nil {
		return fmt.Errorf("its output: %w", err)
	}
	if ok {
		f.output = &spec
	}
	if spec, ok := gotype.Produced(out, f.stated); ok {
		f.produces = &spec
	}
	return nil
}

// goName returns the name of a declared function or method; empty for a literal.
func goName(fn any) string {
	full := strings.TrimSuffix(runtime.FuncForPC(reflect.ValueOf(fn).Pointer()).Name(), "-fm")
	full = strings.ReplaceAll(full, "[...]", "")
	name := full[strings.LastIndexByte(full, '.')+1:]
	if literal.MatchString(name) {
		return ""
	}
	runes := []rune(name)
	var b strings.Builder
	for i, r := range runes {
		upper := unicode.IsUpper(r)
		if upper && i > 0 && (unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// literal matches what the compiler calls a function literal.
var literal = regexp.MustCompile(`^(func)?[0-9]*$`)

// sentence returns a name as a sentence.
func sentence(name string) string {
	text := strings.TrimSpace(strings.NewReplacer("_", " ", "-", " ").Replace(name))
	if text == "" {
		return name
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// Name returns the name by which a declaration refers to the function.
func (f *Function) Name() string { return f.name }

// Effect returns the function's effect.
func (f *Function) Effect() Effect { return f.effect }

// Tool returns a tool of the function's name with everything that the function says of itself, as a base for an
// Entry that no declaration has (NewEntry). Its time limit is 30 s.
func (f *Function) Tool() Tool {
	t := Tool{
		Name: f.name, Title: f.title, Description: f.description, Effect: f.effect, Timeout: 30 * time.Second,
		Args: f.input.Clone(), Binding: Binding{Func: f.name},
	}
	if f.output != nil {
		result := f.output.Clone()
		t.Result = &result
	}
	t.Digest = f.digest("")
	return t
}

// digest returns the digest of a declaration with digest declared that this function is the binding of.
func (f *Function) digest(declared string) string {
	d, err := json.Marshal(f.Descriptor())
	if err != nil {
		panic("registry: a descriptor always encodes: " + err.Error())
	}
	sum := sha256.Sum256(append([]byte(declared+"\n"), d...))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Bound returns the function as the binding of a tool. It runs a write tool only with an attempt, so nothing but
// the effector can run one with it.
func (f *Function) Bound() Bound { return Bound{Invoker: funcInvoker{f}} }

// IsSetUp reports whether the function has a Setup or a Teardown, so that catalogd.Config.Functions must have it.
func (f *Function) IsSetUp() bool { return f.setup != nil || f.teardown != nil }

// SetUp runs the function's Setup for one more catalog, if it is the first; catalogd.New calls it.
func (f *Function) SetUp(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.users == 0 && f.setup != nil {
		if err := f.setup(ctx); err != nil {
			return fmt.Errorf("the setup of function %q: %w", f.name, err)
		}
	}
	f.users++
	return nil
}

// TearDown undoes one SetUp; the last one waits until no call of the function runs, or ctx ends, and then runs the
// function's Teardown. Its error says if calls were still running, because they ignore the end of their context.
func (f *Function) TearDown(ctx context.Context) error {
	f.mu.Lock()
	f.users--
	if f.users > 0 {
		f.mu.Unlock()
		return nil
	}
	var idle chan struct{}
	if f.running > 0 {
		if f.idle == nil {
			f.idle = make(chan struct{})
		}
		idle = f.idle
	}
	f.mu.Unlock()
	var errs []error
	if idle != nil {
		select {
		case <-idle:
		case <-ctx.Done():
			errs = append(errs, fmt.Errorf("function %q still runs; it must return when its context ends", f.name))
		}
	}
	if f.teardown != nil {
		if err := f.teardown(ctx); err != nil {
			errs = append(errs, fmt.Errorf("the teardown of function %q: %w", f.name, err))
		}
	}
	return errors.Join(errs...)
}

// begin counts a running call; the returned function ends it.
func (f *Function) begin() (end func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running++
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.running--; f.running == 0 && f.idle != nil {
			close(f.idle)
			f.idle = nil
		}
	}
}
