package importer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/problem"
)

// foundServer is one server of the file.
type foundServer struct {
	name, path string
	pos        problem.Position
	value      *value
	off        bool
}

// servers finds the servers under the keys of the clients, in the order of the file. A file without any of
// these keys may have the servers by name at its top, as plugins of Claude Code do.
func (r *reading) servers(root *value) []foundServer {
	r.root = root
	if root.kind != object {
		r.fault(root, "", "a client's configuration is an object, and this is %s", root.kind)
		return nil
	}
	var others []member
	for _, m := range root.members {
		if m.value.kind != null && !(r.reads(m.key) && r.under(m)) && !slices.Contains([]string{"inputs", "$schema"}, m.key) {
			others = append(others, m) // Inputs are noted where a server refers to them.
		}
	}
	if len(r.found) == 0 && len(r.faults) == 0 {
		if r.flat(root) {
			return r.found
		}
	}
	r.otherKeys("", others)
	return r.found
}

// reads reports whether the chosen client, or any if none is, keeps servers under the key.
func (r *reading) reads(key string) bool {
	return len(r.client.Under) == 0 || slices.Contains(r.client.Under, key)
}

// under takes the servers of one key of the file's top, and reports whether it has servers.
func (r *reading) under(m member) bool {
	switch {
	case slices.Contains([]string{"mcpServers", "servers", "context_servers"}, m.key):
		r.container(m.key, m.value)
	case m.key == "mcp" && m.value.get("servers") != nil:
		for _, inner := range m.value.members {
			switch inner.key {
			case "servers":
				r.container("mcp.servers", inner.value)
			case "inputs":
			default:
				r.note(inner.value, "mcp."+shown(inner.key), "left out: it is not a server")
			}
		}
	case m.key == "mcp" && opencode(m.value):
		r.container("mcp", m.value)
	case m.key == "experimental" && m.value.get("modelContextProtocolServers") != nil:
		r.container("experimental.modelContextProtocolServers", m.value.get("modelContextProtocolServers"))
	case m.key == "projects" && m.value.kind == object:
		for _, project := range m.value.members {
			if inner := project.value.get("mcpServers"); inner != nil {
				r.container("projects."+shown(project.key)+".mcpServers", inner)
			}
		}
	default:
		return false
	}
	return true
}

// opencode reports whether every member looks like one of its servers; Gemini CLI has an mcp object too, of
// other things.
func opencode(v *value) bool {
	return v.kind == object && len(v.members) > 0 &&
		!slices.ContainsFunc(v.members, func(m member) bool { return !likeServer(m.value) && m.value.get("type") == nil })
}

func likeServer(v *value) bool {
	return slices.ContainsFunc([]string{"command", "url", "serverUrl", "httpUrl"}, func(key string) bool { return v.get(key) != nil })
}

// flat takes the members of the top that look like servers.
func (r *reading) flat(root *value) bool {
	if len(r.client.Under) > 0 && r.client.Under[0] != "mcpServers" || likeServer(root) {
		return false
	}
	servers := &value{kind: object, pos: root.pos}
	var others []member
	for _, m := range root.members {
		if likeServer(m.value) {
			servers.members = append(servers.members, m)
		} else {
			others = append(others, m)
		}
	}
	if len(servers.members) == 0 {
		return false
	}
	r.container("", servers)
	r.otherKeys("", others)
	return true
}

// otherKeys notes, all at once, what holds no servers: settings of a client may have a hundred keys.
func (r *reading) otherKeys(path string, others []member) {
	if len(others) == 0 {
		return
	}
	const named = 5
	var names []string
	for _, m := range others[:min(len(others), named)] {
		names = append(names, shown(m.key))
	}
	text := strings.Join(names, ", ")
	if more := len(others) - named; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	r.notes = append(r.notes, Note{others[0].pos, path, "left out, as no servers are there: " + text})
}

// container takes the servers of an object by name, or of Continue's list.
func (r *reading) container(path string, v *value) {
	switch v.kind {
	case object:
		for _, m := range v.members {
			r.add(foundServer{name: m.key, path: strings.TrimPrefix(path+"."+shown(m.key), "."), pos: m.pos, value: m.value})
		}
	case list:
		for i, item := range v.items {
			name := fmt.Sprintf("server_%d", i+1)
			if given := item.get("name"); given != nil && given.kind == text {
				name = given.text
			}
			r.add(foundServer{name: name, path: fmt.Sprintf("%s.%d", path, i), pos: item.pos, value: item})
		}
	case null:
	default:
		r.fault(v, path, "the servers are an object of them by name, or a list of them, and this is %s", v.kind)
	}
}

// add takes one server, once if it is there several times.
func (r *reading) add(s foundServer) {
	for _, other := range r.found {
		if other.name == s.name && other.value.equal(s.value) {
			r.note(s.value, s.path, "the same server as at %s, under %s: taken once", other.pos, other.path)
			return
		}
	}
	if inner := s.value.get("transport"); inner != nil && inner.kind == object {
		s.value = s.value.with(inner.members)
	}
	s.off = isBool(s.value.get("disabled"), "true") || isBool(s.value.get("enabled"), "false")
	r.found = append(r.found, s)
}

// with is the object with the members of its transport beside its own.
func (v *value) with(members []member) *value {
	merged := &value{kind: object, pos: v.pos}
	for _, m := range v.members {
		if m.key != "transport" {
			merged.members = append(merged.members, m)
		}
	}
	merged.members = append(merged.members, members...)
	return merged
}

func isBool(v *value, spelling string) bool {
	return v != nil && v.kind == boolean && v.text == spelling
}
