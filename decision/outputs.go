package decision

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/catalogd/catalogd/decision/trust"
)

// outputs are the obligations and terms of a point's answer.
type outputs struct {
	terms    trust.Terms
	env      []string
	timeout  time.Duration
	relay    []string
	hosts    []string
	rate     RateLimit
	approval *Approval
	redact   []string
	patterns []string
	bytes    int
	faulty   string // the output that is at fault, where one is
}

// answer reads the value of a point's package. It collects every fault, and the gravest one gives the code:
// an unknown output, then one of the wrong type, then one that is missing, then an obligation that can't be
// carried out. A decision that denies has no outputs.
func answer(spec pointSpec, q inquiry, document ast.Object) (Decision, outputs) {
	r := reader{document: document}
	r.unknown(spec)
	allow := r.boolean(q.yes)
	reasons := r.strings("deny", setsOnly)
	var out outputs
	quarantine := false
	switch spec.point {
	case Discover:
		quarantine = r.boolean("quarantine")
	case Connect:
		out.env = r.strings("env", orArray)
		out.terms = r.terms(allow, out.env)
	case Call:
		out.timeout = r.duration("timeout")
		out.relay = r.relay()
		out.hosts = r.hosts()
		out.rate = r.rate()
		out.approval = r.approval(q.writes)
	case Result:
		out.redact = r.pointers("redact")
		out.patterns = r.patterns("redact_patterns")
		out.bytes = r.count("max_bytes")
	}
	switch {
	case r.code != "":
		return deny(spec.point, r.code, append(reasons, r.faults...)...), outputs{faulty: r.output}
	case len(reasons) > 0:
		return deny(spec.point, Denied, reasons...), outputs{}
	case quarantine:
		return deny(spec.point, Quarantined), outputs{}
	case !allow && !r.has(q.yes):
		return deny(spec.point, Undefined, fmt.Sprintf("data.catalogd.%s.%s has no value", spec.point, q.yes)), outputs{faulty: q.yes}
	case !allow:
		return deny(spec.point, Denied, fmt.Sprintf("no rule of data.catalogd.%s allows it", spec.point)), outputs{}
	}
	return Decision{
		Point: spec.point, Allow: true, Code: Allowed, Trust: out.terms.Entry, Env: out.env,
		Timeout: out.timeout, Relay: out.relay, Hosts: out.hosts,
		RateLimit: out.rate, RequireApproval: out.approval, Redact: out.redact, RedactPatterns: out.patterns, MaxBytes: out.bytes,
	}, out
}

// reader reads outputs and collects faults.
type reader struct {
	document ast.Object
	code     ReasonCode
	output   string // with the gravest fault
	faults   []string
}

// gravity orders the codes of faults.
var gravity = map[ReasonCode]int{UnknownOutput: 4, BadDecisionType: 3, Undefined: 2, UnsupportedObligation: 1}

// fault records what is wrong with an output; format continues after its name.
func (r *reader) fault(output string, code ReasonCode, format string, args ...any) {
	if gravity[code] > gravity[r.code] {
		r.code, r.output = code, output
	}
	r.faults = append(r.faults, output+" "+fmt.Sprintf(format, args...))
}

func (r *reader) get(name string) ast.Value {
	key := outputNames[name]
	if key == nil {
		key = ast.StringTerm(name)
	}
	if term := r.document.Get(key); term != nil {
		return term.Value
	}
	return nil
}

// outputNames are the outputs of all points as terms, made once.
var outputNames = func() map[string]*ast.Term {
	terms := map[string]*ast.Term{}
	for _, spec := range points {
		for _, name := range spec.allOutputs() {
			terms[name] = ast.StringTerm(name)
		}
	}
	return terms
}()

func (r *reader) has(name string) bool { return r.get(name) != nil }

func (r *reader) wrongType(name, want string, got ast.Value) {
	r.fault(name, BadDecisionType, "is %s, it must be %s", ast.ValueName(got), want)
}

func (r *reader) unknown(spec pointSpec) {
	r.document.Foreach(func(key, _ *ast.Term) {
		name, ok := key.Value.(ast.String)
		if !ok {
			name = ast.String(key.String())
		}
		if !ok || !spec.hasOutput(string(name)) {
			r.fault(string(name), UnknownOutput, "is not an output of %s", spec.point)
		}
	})
}

func (r *reader) boolean(name string) bool {
	value := r.get(name)
	if value == nil {
		return false
	}
	b, ok := value.(ast.Boolean)
	if !ok {
		r.wrongType(name, "a boolean", value)
	}
	return bool(b)
}

func (r *reader) string(name string) string {
	value := r.get(name)
	if value == nil {
		return ""
	}
	s, ok := value.(ast.String)
	if !ok {
		r.wrongType(name, "a string", value)
	}
	return string(s)
}

const (
	setsOnly = false
	orArray  = true
)

// strings reads a set of strings, or an array where lists is true.
func (r *reader) strings(name string, lists bool) []string {
	var elems []*ast.Term
	switch value := r.get(name).(type) {
	case nil:
		return nil
	case ast.Set:
		elems = value.Slice()
	case *ast.Array:
		if !lists {
			r.wrongType(name, "a set of strings (`"+name+" contains ...`)", value)
			return nil
		}
		value.Foreach(func(t *ast.Term) { elems = append(elems, t) })
	default:
		r.wrongType(name, "a set of strings", value)
		return nil
	}
	list := make([]string, 0, len(elems))
	for _, elem := range elems {
		s, ok := elem.Value.(ast.String)
		if !ok {
			r.fault(name, BadDecisionType, "holds %s, it must hold strings", ast.ValueName(elem.Value))
			continue
		}
		list = append(list, string(s))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func (r *reader) count(name string) int {
	value := r.get(name)
	if value == nil {
		return 0
	}
	n, ok := value.(ast.Number)
	if !ok {
		r.wrongType(name, "a whole number", value)
		return 0
	}
	i, ok := n.Int()
	if !ok || i < 0 {
		r.fault(name, BadDecisionType, "is %s, it must be a whole number from 0", n)
		return 0
	}
	return i
}

func (r *reader) duration(name string) time.Duration {
	if !r.has(name) {
		return 0
	}
	value, ok := r.get(name).(ast.String)
	if !ok {
		r.wrongType(name, "a duration such as 30s or 1m30s", r.get(name))
		return 0
	}
	text := string(value)
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		r.fault(name, BadDecisionType, "is %q, it must be a duration such as 30s or 1m30s", text)
		return 0
	}
	return d
}

var sha256Text = regexp.MustCompile(`^([0-9a-f]{64})?$`)

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// terms reads what connect grants. An allowed connect without the name of its trust entry is none.
func (r *reader) terms(allow bool, env []string) trust.Terms {
	t := trust.Terms{
		Entry:          r.string("trust"),
		FromCall:       r.strings("from_call", orArray),
		Stdin:          r.boolean("stdin"),
		Headers:        r.strings("headers", orArray),
		Secrets:        r.strings("secrets", orArray),
		MaxConnections: r.count("max_connections"),
		Interpreter:    r.boolean("interpreter"),
		Unpinned:       r.boolean("unpinned"),
		InTree:         r.boolean("in_tree"),
		Addresses:      r.strings("addresses", orArray),
		SHA256:         r.string("sha256"),
	}
	if allow && t.Entry == "" && r.code == "" {
		r.fault("trust", Undefined, "has no value: an allowed connection carries the name of its trust entry")
	}
	t.Env, t.Fixed = r.variables(env)
	if !sha256Text.MatchString(t.SHA256) {
		r.fault("sha256", BadDecisionType, "is %q, it must be the 64 hexadecimal digits of a digest, in lower case", t.SHA256)
	}
	for _, cidr := range t.Addresses {
		if _, err := netip.ParsePrefix(cidr); err != nil {
			r.fault("addresses", BadDecisionType, "holds %q, which is not a range such as 10.1.0.0/16", cidr)
		}
	}
	return t
}

// variables reads what env names: NAME, or NAME=value for a value that is fixed.
func (r *reader) variables(env []string) (names []string, fixed map[string]string) {
	fixed = map[string]string{}
	for _, item := range env {
		name, value, fixes := strings.Cut(item, "=")
		_, twice := fixed[name]
		switch {
		case !envName.MatchString(name) || strings.ContainsRune(value, 0):
			r.fault("env", BadDecisionType, "holds %q, which is neither the name of an environment variable nor NAME=value", item)
		case name == trust.KeyVariable:
			r.fault("env", BadDecisionType, "holds %s, which is catalogd's own: it carries the idempotency key of a call", name)
		case fixes && twice:
			r.fault("env", BadDecisionType, "fixes two values for %s", name)
		case fixes:
			fixed[name] = value
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names), fixed
}

// relayed is the closed list of what relay can hold.
var relayed = []string{"elicitation", "logging", "roots", "sampling"}

func (r *reader) relay() []string {
	kinds := r.strings("relay", setsOnly)
	for _, kind := range kinds {
		if !slices.Contains(relayed, kind) {
			r.fault("relay", BadDecisionType, "holds %q, it can hold %s", kind, strings.Join(relayed, ", "))
		}
	}
	return kinds
}

var hostName = regexp.MustCompile(`^([a-z0-9._-]+|\[[0-9a-f:.]+\])(:[0-9]+)?$`)

func (r *reader) hosts() []string {
	hosts := r.strings("elicitation_hosts", setsOnly)
	for _, host := range hosts {
		if !hostName.MatchString(host) {
			r.fault("elicitation_hosts", BadDecisionType, "holds %q, which is not a host in lower case such as login.example.com", host)
		}
	}
	return hosts
}

// maxRate caps how many calls a rate limit can let through in its time, because each of them is remembered.
const maxRate = 10_000

// rate reads {"calls": 10, "per": "1m"}.
func (r *reader) rate() RateLimit {
	const want = `an object like {"calls": 10, "per": "1m"}`
	value := r.get("rate_limit")
	if value == nil || empty(value) {
		return RateLimit{}
	}
	object, ok := value.(ast.Object)
	if !ok {
		r.wrongType("rate_limit", want, value)
		return RateLimit{}
	}
	limit := reader{document: object}
	calls, per := limit.count("calls"), limit.duration("per")
	if limit.code != "" || object.Len() != 2 || calls < 1 || calls > maxRate || per < time.Second || per > time.Hour {
		r.fault("rate_limit", BadDecisionType, "is %v, it must be %s: 1 to %d calls, a time from 1s to 1h", object, want, maxRate)
		return RateLimit{}
	}
	return RateLimit{calls, per}
}

// pointers reads a set of JSON pointers (RFC 6901).
func (r *reader) pointers(name string) []string {
	all := r.strings(name, setsOnly)
	for _, p := range all {
		if p != "" && !strings.HasPrefix(p, "/") || badEscape.MatchString(p) {
			r.fault(name, BadDecisionType, "holds %q, which is no JSON pointer such as /customer/email", p)
		}
	}
	return all
}

var badEscape = regexp.MustCompile(`~([^01]|$)`)

// approval reads {"groups": ["ops"], "reason": "it deletes", "self": false, "expires": "4h"}. An approval
// that nobody could give is a fault, and so is one of a call without a side effect (writes is false).
func (r *reader) approval(writes bool) *Approval {
	const name, want = "require_approval", `an object like {"groups": ["ops"], "reason": "it deletes", "self": false, "expires": "4h"}`
	value := r.get(name)
	if value == nil {
		return nil
	}
	object, ok := value.(ast.Object)
	if !ok {
		r.wrongType(name, want, value)
		return nil
	}
	of := reader{document: object}
	of.only("groups", "reason", "self", "expires")
	a := &Approval{Groups: of.strings("groups", orArray), Reason: of.string("reason"), Self: of.boolean("self"), Expires: DefaultExpires}
	if of.has("expires") {
		a.Expires = of.duration("expires")
	}
	switch {
	case slices.Contains(a.Groups, ""):
		of.fault("groups", BadDecisionType, "holds an empty name")
	case len(a.Groups) == 0 && !a.Self && of.code == "":
		of.fault("groups", BadDecisionType, "names no group, and self is not true, so nobody could approve")
	case a.Expires > MaxExpires:
		of.fault("expires", BadDecisionType, "is %v, it must be at most %v", a.Expires, MaxExpires)
	}
	if of.code != "" {
		r.fault(name, BadDecisionType, "must be %s: %s", want, strings.Join(of.faults, "; "))
		return nil
	}
	if a.Groups == nil {
		a.Groups = []string{}
	}
	if !writes {
		r.fault(name, UnsupportedObligation, "is for calls of tools with a side effect (effect: write); deny this one, or declare the effect")
		return nil
	}
	return a
}

// only reports every other field of an object.
func (r *reader) only(fields ...string) {
	r.document.Foreach(func(key, _ *ast.Term) {
		if name, ok := key.Value.(ast.String); !ok || !slices.Contains(fields, string(name)) {
			r.fault(key.String(), BadDecisionType, "is not a field of it (%s)", strings.Join(fields, ", "))
		}
	})
}

// empty reports whether a limit limits nothing.
func empty(value ast.Value) bool {
	switch v := value.(type) {
	case ast.Null:
		return true
	case ast.Boolean:
		return !bool(v)
	case ast.String:
		return v == ""
	case ast.Number:
		return v.String() == "0"
	case *ast.Array:
		return v.Len() == 0
	case ast.Set:
		return v.Len() == 0
	case ast.Object:
		return v.Len() == 0
	}
	return false
}
