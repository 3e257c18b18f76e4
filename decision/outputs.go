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

// outputs are what a point answers beside yes or no.
type outputs struct {
	terms    trust.Terms
	withheld []string
	timeout  time.Duration
	relay    []string
	hosts    []string
	rate     RateLimit
	redact   []string
	bytes    int
}

// unsupported are the obligations that no version has carried out yet: a policy that sets one is not obeyed by running
// the call without it.
var unsupported = []string{"require_approval"}

// answer reads the value of a point's package. Every fault is collected, and the gravest gives the code: an output
// that is unknown, then one of the wrong type, then one that is missing, then an obligation that can't be carried out.
// What is read in a decision that denies is not handed out. yes is the name of the output that allows.
func answer(spec pointSpec, yes string, document ast.Object) (Decision, outputs) {
	r := reader{document: document}
	r.unknown(spec)
	allow := r.boolean(yes)
	reasons := r.strings("deny", setsOnly)
	var out outputs
	quarantine := false
	switch spec.point {
	case Discover:
		quarantine = r.boolean("quarantine")
	case Connect:
		out.terms = r.terms(allow)
		out.withheld = r.strings("withheld", true)
	case Call:
		out.timeout = r.duration("timeout")
		out.relay = r.relay()
		out.hosts = r.hosts()
		out.rate = r.rate()
		r.obligations()
	case Result:
		out.redact = r.pointers("redact")
		out.bytes = r.count("max_bytes")
	}
	switch {
	case r.code != "":
		return no(spec.point, r.code, append(reasons, r.faults...)...), outputs{}
	case len(reasons) > 0:
		return no(spec.point, Denied, reasons...), outputs{}
	case quarantine:
		return no(spec.point, Quarantined), outputs{}
	case !allow && !r.has(yes):
		return no(spec.point, Undefined, fmt.Sprintf("data.catalogd.%s.%s has no value", spec.point, yes)), outputs{}
	case !allow:
		return no(spec.point, Denied, fmt.Sprintf("no rule of data.catalogd.%s allows it", spec.point)), outputs{}
	}
	return Decision{
		Point: spec.point, Allow: true, Code: Allowed, Trust: out.terms.Entry, Env: out.terms.Env, Withheld: out.withheld,
		Timeout: out.timeout, Relay: out.relay, Hosts: out.hosts,
		RateLimit: out.rate, Redact: out.redact, MaxBytes: out.bytes,
	}, out
}

// reader reads outputs and remembers every fault.
type reader struct {
	document ast.Object
	code     ReasonCode
	faults   []string
}

// gravity orders the codes of faults.
var gravity = map[ReasonCode]int{UnknownOutput: 4, BadDecisionType: 3, Undefined: 2, UnsupportedObligation: 1}

func (r *reader) fault(code ReasonCode, format string, args ...any) {
	if gravity[code] > gravity[r.code] {
		r.code = code
	}
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
}

func (r *reader) get(name string) ast.Value {
	if term := r.document.Get(ast.InternedTerm(name)); term != nil {
		return term.Value
	}
	return nil
}

func (r *reader) has(name string) bool { return r.get(name) != nil }

func (r *reader) wrongType(name, want string, got ast.Value) {
	r.fault(BadDecisionType, "%s is %s, it must be %s", name, ast.ValueName(got), want)
}

func (r *reader) unknown(spec pointSpec) {
	r.document.Foreach(func(key, _ *ast.Term) {
		name, ok := key.Value.(ast.String)
		if !ok || !spec.hasOutput(string(name)) {
			r.fault(UnknownOutput, "%v is no output of %s", key, spec.point)
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

const setsOnly = false

// strings reads a set of strings, or an array where orArray is true.
func (r *reader) strings(name string, orArray bool) []string {
	var elems []*ast.Term
	switch value := r.get(name).(type) {
	case nil:
		return nil
	case ast.Set:
		elems = value.Slice()
	case *ast.Array:
		if !orArray {
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
			r.fault(BadDecisionType, "%s holds %s, it must hold strings", name, ast.ValueName(elem.Value))
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
		r.fault(BadDecisionType, "%s is %s, it must be a whole number from 0", name, n)
		return 0
	}
	return i
}

func (r *reader) duration(name string) time.Duration {
	if !r.has(name) {
		return 0
	}
	text := r.string(name)
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		r.fault(BadDecisionType, "%s is %q, it must be a duration such as 30s or 1m30s", name, text)
		return 0
	}
	return d
}

var sha256Text = regexp.MustCompile(`^([0-9a-f]{64})?$`)

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// terms reads what connect grants. An allowed connect without the name of its trust entry is none.
func (r *reader) terms(allow bool) trust.Terms {
	t := trust.Terms{
		Entry:          r.string("trust"),
		Env:            r.strings("env", true),
		MaxConnections: r.count("max_connections"),
		Interpreter:    r.boolean("interpreter"),
		Addresses:      r.strings("addresses", true),
		SHA256:         r.string("sha256"),
	}
	if allow && t.Entry == "" && r.code == "" {
		r.fault(Undefined, "trust has no value: an allowed connection carries the name of its trust entry")
	}
	for _, name := range t.Env {
		if !envName.MatchString(name) {
			r.fault(BadDecisionType, "env holds %q, which is no name of an environment variable", name)
		}
	}
	if !sha256Text.MatchString(t.SHA256) {
		r.fault(BadDecisionType, "sha256 is %q, it must be the 64 hexadecimal digits of a digest, in lower case", t.SHA256)
	}
	for _, cidr := range t.Addresses {
		if _, err := netip.ParsePrefix(cidr); err != nil {
			r.fault(BadDecisionType, "addresses holds %q, which is no range such as 10.1.0.0/16", cidr)
		}
	}
	return t
}

// relayed is the closed list of what relay can hold.
var relayed = []string{"elicitation", "logging", "roots", "sampling"}

func (r *reader) relay() []string {
	kinds := r.strings("relay", setsOnly)
	for _, kind := range kinds {
		if !slices.Contains(relayed, kind) {
			r.fault(BadDecisionType, "relay holds %q, it can hold %s", kind, strings.Join(relayed, ", "))
		}
	}
	return kinds
}

var hostName = regexp.MustCompile(`^([a-z0-9._-]+|\[[0-9a-f:.]+\])(:[0-9]+)?$`)

func (r *reader) hosts() []string {
	hosts := r.strings("elicitation_hosts", setsOnly)
	for _, host := range hosts {
		if !hostName.MatchString(host) {
			r.fault(BadDecisionType, "elicitation_hosts holds %q, which is no host in lower case such as login.example.com", host)
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
		r.fault(BadDecisionType, "rate_limit is %v, it must be %s: 1 to %d calls, a time from 1s to 1h", object, want, maxRate)
		return RateLimit{}
	}
	return RateLimit{calls, per}
}

// pointers reads a set of JSON pointers (RFC 6901).
func (r *reader) pointers(name string) []string {
	all := r.strings(name, setsOnly)
	for _, p := range all {
		if p != "" && !strings.HasPrefix(p, "/") || badEscape.MatchString(p) {
			r.fault(BadDecisionType, "%s holds %q, which is no JSON pointer such as /customer/email", name, p)
		}
	}
	return all
}

var badEscape = regexp.MustCompile(`~([^01]|$)`)

func (r *reader) obligations() {
	for _, name := range unsupported {
		if value := r.get(name); value != nil && !empty(value) {
			r.fault(UnsupportedObligation, "%s can't be carried out by this version of catalogd", name)
		}
	}
}

// empty reports whether an obligation asks for nothing.
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
