package importer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/problem"
)

// reading collects what is to be said about one file.
type reading struct {
	file   string
	root   *value
	notes  []Note
	faults []Note
}

func (r *reading) note(v *value, path, format string, args ...any) {
	r.notes = append(r.notes, Note{v.pos, path, fmt.Sprintf(format, args...)})
}

func (r *reading) fault(v *value, path, format string, args ...any) {
	r.faults = append(r.faults, Note{v.pos, path, fmt.Sprintf(format, args...)})
}

// foundServer is one server of the file.
type foundServer struct {
	name, path string
	pos        problem.Position
	value      *value
	off        bool
}

// servers finds the servers under the key of each client: mcpServers (Claude Code and Desktop, Cursor, Windsurf, Gemini
// CLI), servers (VS Code's mcp.json), mcp.servers (VS Code's settings), mcp (opencode) and context_servers (Zed).
func (r *reading) servers(root *value) []foundServer {
	r.root = root
	if root.kind != object {
		r.fault(root, "", "a client's configuration is an object, and this is %s", root.kind)
		return nil
	}
	var out []foundServer
	for _, m := range root.members {
		switch {
		case m.value.kind == null:
		case slices.Contains([]string{"mcpServers", "servers", "context_servers"}, m.key):
			out = r.container(out, m.key, m.value)
		case m.key == "mcp" && m.value.get("servers") != nil:
			for _, inner := range m.value.members {
				switch inner.key {
				case "servers":
					out = r.container(out, "mcp.servers", inner.value)
				case "inputs":
				default:
					r.note(inner.value, "mcp."+shown(inner.key), "left out: it is not a server")
				}
			}
		case m.key == "mcp" && opencode(m.value):
			out = r.container(out, "mcp", m.value)
		case m.key == "inputs", m.key == "$schema":
			// Inputs are spoken of where a server refers to them.
		default:
			r.note(m.value, shown(m.key), "left out: it is not a server")
		}
	}
	return out
}

// opencode reports whether every member looks like one of its servers; Gemini CLI has an mcp object too, of other things.
func opencode(v *value) bool {
	for _, m := range v.members {
		if m.value.get("type") == nil && m.value.get("command") == nil && m.value.get("url") == nil {
			return false
		}
	}
	return v.kind == object && len(v.members) > 0
}

func (r *reading) container(out []foundServer, path string, v *value) []foundServer {
	if v.kind != object {
		r.fault(v, path, "the servers are an object of them by name, and this is %s", v.kind)
		return out
	}
	for _, m := range v.members {
		s := foundServer{m.key, path + "." + shown(m.key), m.pos, m.value, false}
		for _, other := range out {
			if other.name == m.key {
				r.fault(m.value, s.path, "the server is declared already at %s, under %s", other.pos, other.path)
			}
		}
		if m.value.kind != object {
			r.fault(m.value, s.path, "a server is an object, and this is %s", m.value.kind)
			continue
		}
		s.off = isBool(m.value.get("disabled"), "true") || isBool(m.value.get("enabled"), "false")
		out = append(out, s)
	}
	return out
}

func isBool(v *value, spelling string) bool {
	return v != nil && v.kind == boolean && v.text == spelling
}

// taken are the fields of a server that are translated; the rest is left out with a note.
var taken = []string{
	"type", "transport", "command", "args", "env", "environment", "cwd", "url", "serverUrl", "httpUrl", "headers",
	"includeTools", "excludeTools", "disabledTools", "disabled", "enabled", "source",
}

// left says more than that a field was left out, where there is more to say.
var left = map[string]string{
	"autoApprove":   "left out: importing is not trusting; what may be called is for policy/access/data.yaml",
	"alwaysAllow":   "left out: importing is not trusting; what may be called is for policy/access/data.yaml",
	"trust":         "left out: importing is not trusting; what may be reached is for policy/trust/data.yaml",
	"envFile":       "left out: set what the server needs of that file in catalogd's environment, and refer to it under env",
	"timeout":       "left out: clients mean different units; set callTimeout or initializeTimeout",
	"oauth":         "left out: this version has no OAuth flow; give the server a header with a secret",
	"auth":          "left out: this version has no OAuth flow; give the server a header with a secret",
	"headersHelper": "left out: headers are literal or from a secret; no command makes them",
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
