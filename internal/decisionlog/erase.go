package decisionlog

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/strictjson"
)

// arguments is the pointer to the arguments of a call in an event.
const arguments = "/input/arguments"

// loggedArguments are the arguments of a call as they may be logged, nil for none, and the pointers of the
// secrets that are left out of them.
type loggedArguments struct {
	json    []byte
	secrets []string
}

// erased returns the pointers of what is left out of the event.
func (a loggedArguments) erased(e decision.Event) []string {
	never := e.Erased()
	if a.json == nil {
		return never
	}
	others := slices.DeleteFunc(slices.Clone(never), func(p string) bool { return p == arguments })
	return append(others, a.secrets...)
}

// argumentsOf returns the arguments behind an event without what is declared as a secret.
func argumentsOf(e decision.Event) (args loggedArguments) {
	var raw json.RawMessage
	switch in := e.Input.(type) {
	case decision.CallInput:
		raw = in.Arguments
	case decision.ResultInput:
		raw = in.Arguments
	case decision.ReleaseInput:
		raw = in.Arguments
	}
	all, err := decode(raw)
	if len(raw) == 0 || err != nil {
		return args
	}
	if e.Shown != nil {
		shown, err := decode(e.Shown())
		if err != nil {
			return args
		}
		all = withoutSecrets(all, shown, arguments, &args.secrets)
		slices.Sort(args.secrets)
	}
	args.json = encoded(all)
	return args
}

// withoutSecrets returns v without what differs in shown, the redacted arguments, and adds the pointers of
// what it removed.
func withoutSecrets(v, shown any, at string, secrets *[]string) any {
	switch v := v.(type) {
	case map[string]any:
		other, ok := shown.(map[string]any)
		for name := range v {
			_, there := other[name]
			ok = ok && there // else the name itself may hold a secret
		}
		if !ok {
			break
		}
		for name, value := range v {
			v[name] = withoutSecrets(value, other[name], at+"/"+pointerEscaper.Replace(name), secrets)
			if v[name] == secret {
				delete(v, name)
			}
		}
		return v
	case []any:
		other, ok := shown.([]any)
		if !ok || len(other) != len(v) {
			break
		}
		for i, value := range v {
			if v[i] = withoutSecrets(value, other[i], at+"/"+strconv.Itoa(i), secrets); v[i] == secret {
				v[i] = nil
			}
		}
		return v
	default:
		if v == shown {
			return v
		}
	}
	*secrets = append(*secrets, at)
	return secret
}

// secret marks a removed value until its parent drops it.
var secret any = new(struct{ _ byte })

var (
	pointerEscaper   = strings.NewReplacer("~", "~0", "/", "~1")
	pointerUnescaper = strings.NewReplacer("~1", "/", "~0", "~")
)

// masked returns an event without what the policy's catalogd.log masks. If that can't be evaluated, the whole
// input and all reasons are masked.
func (l *Log) masked(e decision.Event, line []byte) []byte {
	decoded, err := decode(line)
	event, ok := decoded.(map[string]any)
	if err != nil || !ok {
		panic(fmt.Sprintf("decisionlog: an event is a JSON object: %v", err))
	}
	logging, err := e.Engine.Log(context.Background(), decoded)
	if err != nil {
		l.warn("the policy's catalogd.log can't say what to mask; inputs and reasons are left out", "error", err)
		logging.Mask = []string{"/input", "/result/reasons"}
		event["custom"].(map[string]any)["mask_error"] = err.Error()
	}
	changed := err != nil
	if !logging.Arguments && Erase(event, arguments) {
		event["erased"], changed = loggedArguments{}.erased(e), true
	}
	var done []string
	for _, p := range logging.Mask {
		if Erase(event, p) {
			done = append(done, p)
		}
	}
	if len(done) > 0 {
		event["masked"], changed = done, true
	}
	if !changed {
		return line
	}
	input, _ := event["input"].(map[string]any)
	principal, _ := input["principal"].(map[string]any)
	if _, named := principal["name"]; !named {
		delete(event, "requested_by") // says the name once more
	}
	return encoded(event)
}

// decode reads JSON with exact numbers.
func decode(text []byte) (any, error) {
	return strictjson.DecodeMaps(text, strictjson.Options{AllowDuplicates: true, AllowUnpaired: true}, nil)
}

// Erase removes from an event, as decoded JSON, what is at a JSON pointer (RFC 6901), in which a step * means
// every item of a list. It reports whether there was anything.
func Erase(event map[string]any, pointer string) bool {
	return erase(event, strings.Split(pointer[1:], "/"))
}

// erase removes what is at the steps of a JSON pointer. An item of a list becomes null, so that the others
// keep the indexes that further pointers name.
func erase(v any, steps []string) (found bool) {
	step := pointerUnescaper.Replace(steps[0])
	switch v := v.(type) {
	case map[string]any:
		child, ok := v[step]
		if !ok || len(steps) > 1 {
			return ok && erase(child, steps[1:])
		}
		delete(v, step)
		return true
	case []any:
		first, end := 0, len(v)
		if step != "*" {
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(v) || strconv.Itoa(i) != step {
				return false
			}
			first, end = i, i+1
		}
		for i := first; i < end; i++ {
			if len(steps) > 1 {
				found = erase(v[i], steps[1:]) || found
				continue
			}
			v[i], found = nil, true
		}
		return found
	}
	return false
}
