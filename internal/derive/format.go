package derive

import (
	"encoding/json"
	"slices"
	"time"

	"cuelang.org/go/cue"

	"github.com/catalogd/catalogd/contract"
)

// What the builtins of time, net and uuid accept as text. They are Go's own readers, which take more than the standards
// that JSON Schema's formats name, so each is said as what Go takes: exactly where a pattern can, else as near as one can.
const (
	dateTime = contract.PatternDateTime
	duration = contract.PatternDuration
	anUUID   = contract.PatternUUID
	ipv6     = contract.PatternIPv6
	ip       = contract.PatternIP
	ipCIDR   = contract.PatternCIDR
)

// format adds what a builtin of time, net or uuid demands of a text. It reports false for any other.
func (w *walker) format(n *node, v cue.Value, name string, arguments []cue.Value, at place) bool {
	lossy := func(text string) {
		w.lose(contract.LossFormat, at, w.blameCall(at, v), "%s", text)
	}
	switch name {
	case "time.Time":
		n.formatted("date-time")
		n.patterns = appendNew(n.patterns, dateTime)
	case "time.Format":
		return w.layout(n, arguments)
	case "time.Duration":
		n.patterns = appendNew(n.patterns, duration)
		lossy("time.Duration() takes no more than 2562047h47m16.854775807s")
	case "uuid.Valid":
		n.patterns = appendNew(n.patterns, anUUID)
	case "net.IPv4":
		w.address(n, &node{format: "ipv4"}, 4)
	case "net.IPv6":
		w.address(n, &node{patterns: []string{ipv6}}, 16)
		lossy("net.IPv6() takes addresses as Go reads them, with a zone or without")
	case "net.IP":
		w.address(n, &node{patterns: []string{ip}}, 4, 16)
		lossy("net.IP() takes addresses as Go reads them, with a zone or without")
	case "net.IPCIDR":
		n.types = []string{"string"}
		n.patterns = appendNew(n.patterns, ipCIDR)
		lossy("net.IPCIDR() takes prefixes as Go reads them")
	default:
		return false
	}
	return true
}

// layout says time.Format of the layouts that a format exists for.
func (w *walker) layout(n *node, arguments []cue.Value) bool {
	if len(arguments) != 1 {
		return false
	}
	layout, err := arguments[0].String()
	switch {
	case err != nil:
		return false
	case layout == time.RFC3339, layout == time.RFC3339Nano:
		n.formatted("date-time")
		n.patterns = appendNew(n.patterns, dateTime)
	case layout == time.DateOnly:
		n.formatted("date")
	default:
		return false
	}
	return true
}

// address takes a text or, where n takes lists, the bytes of an address.
func (w *walker) address(n, text *node, lengths ...int64) {
	text.types = []string{"string"}
	forms := &node{anyOf: []*node{text}}
	for _, length := range lengths {
		octet := &node{types: []string{"integer"}, minimum: json.RawMessage("0"), maximum: json.RawMessage("255")}
		forms.anyOf = append(forms.anyOf, &node{types: []string{"array"}, items: octet, minItems: &length, maxItems: &length})
	}
	switch {
	case len(n.types) > 0 && !slices.Contains(n.types, "array"):
		n.types = []string{"string"}
		n.patterns = append(n.patterns, text.patterns...)
		n.formatted(text.format)
	case n.anyOf == nil:
		n.types, n.anyOf = nil, forms.anyOf
	default:
		n.also = append(n.also, forms)
	}
}

// formatted adds a format; one keyword can say but one.
func (n *node) formatted(format string) {
	switch n.format {
	case "", format:
		n.format = format
	default:
		n.also = append(n.also, &node{format: format})
	}
}
