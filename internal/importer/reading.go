package importer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/internal/clients"
)

// reading collects what is to be said about one file.
type reading struct {
	file   string
	root   *value
	client clients.Client // without a name until it is chosen or recognized
	syntax
	yaml    bool
	resolve func(command string) (string, error)

	found  []foundServer
	notes  []Note
	faults []Note
}

func (r *reading) note(v *value, path, format string, args ...any) {
	r.notes = append(r.notes, Note{v.pos, path, fmt.Sprintf(format, args...)})
}

func (r *reading) fault(v *value, path, format string, args ...any) {
	r.faults = append(r.faults, Note{v.pos, path, fmt.Sprintf(format, args...)})
}

// taken are the fields of a server that are translated; the rest is left out with a note.
var taken = []string{
	"name", "type", "transport", "command", "args", "env", "environment", "cwd", "url", "serverUrl", "httpUrl", "headers",
	"requestOptions", "includeTools", "excludeTools", "disabledTools", "disabled", "enabled", "source",
}

// left says more than that a field was left out, where there is more to say.
var left = map[string]string{
	"autoApprove":    "left out: importing is not trusting; what may be called is for policy/access/data.yaml",
	"alwaysAllow":    "left out: importing is not trusting; what may be called is for policy/access/data.yaml",
	"trust":          "left out: importing is not trusting; what may be reached is for policy/trust/data.yaml",
	"envFile":        "left out: set what the server needs of that file in catalogd's environment, and refer to it under env",
	"timeout":        "left out: clients mean different units; set callTimeout or initializeTimeout",
	"oauth":          "left out: this version has no OAuth flow; give the server a header with a secret",
	"auth":           "left out: this version has no OAuth flow; give the server a header with a secret",
	"requiresOAuth":  "left out: this version has no OAuth flow; give the server a header with a secret",
	"apiKey":         "left out: give the server a header with a secret",
	"headersHelper":  "left out: headers are literal or from a secret; no command makes them",
	"sandbox":        "left out: catalogd runs no sandbox; the trust entry says what may run",
	"sandboxEnabled": "left out: catalogd runs no sandbox; the trust entry says what may run",
	"customUserVars": "left out: catalogd has one value for all callers, from its environment",
}

// leftOut reports the fields that no declaration has.
func (r *reading) leftOut(s foundServer) {
	for _, m := range s.value.members {
		if slices.Contains(taken, m.key) {
			continue
		}
		message, ok := left[m.key]
		if !ok {
			message = "left out: a server of a catalog has no such field"
		}
		r.note(m.value, s.path+"."+shown(m.key), "%s", message)
	}
}

// oneOf is the one of several spellings of a field that the server uses.
func (r *reading) oneOf(s foundServer, keys ...string) (key string, v *value) {
	for _, k := range keys {
		switch x := s.value.get(k); {
		case x == nil:
		case v != nil:
			r.fault(x, s.path+"."+k, "it says the same as %s; take one away", key)
		default:
			key, v = k, x
		}
	}
	return key, v
}

// texts are the strings of a list; anything else is a fault.
func (r *reading) texts(v *value, path string) (out []*value) {
	if v == nil {
		return nil
	}
	if v.kind != list {
		r.fault(v, path, "it must be a list of strings, and is %s", v.kind)
		return nil
	}
	for i, item := range v.items {
		if item.kind != text {
			r.fault(item, fmt.Sprintf("%s.%d", path, i), "it must be a string, and is %s", item.kind)
			continue
		}
		out = append(out, item)
	}
	return out
}

// shown is a key of the file as a message may repeat it.
func shown(key string) string {
	if tokenLike(key) || strings.TrimSpace(key) == "" {
		return "***"
	}
	return key
}
