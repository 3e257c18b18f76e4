package propose

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"

	"github.com/catalogd/catalogd/decision/trust"
)

// naming are the fields that say which target an entry covers, but for path.
var naming = []string{"command", "dir", "host", "scheme", "port"}

// Meant reports whether an entry, through which nothing is reached, was probably written for a target that it
// doesn't cover: the same program with a similar command line or of the same name, or an address that differs
// in one part.
func (e Entry) Meant(name, subject string, entry map[string]any, target trust.Target) bool {
	own := e.Value()
	if target.Command != nil {
		if !MayCover(entry, target) {
			return false
		}
		a, b := texts(entry["command"]), texts(own["command"])
		differing := max(len(a), len(b)) - min(len(a), len(b))
		for i := range min(len(a), len(b)) {
			if a[i] != b[i] {
				differing++
			}
		}
		return differing == 0 || name == subject || differing == 1 && len(b) > 2
	}
	host, ok := entry["host"].(string)
	if !ok {
		return false
	}
	differing := 0
	for _, key := range []string{"scheme", "port"} {
		if fmt.Sprint(entry[key]) != fmt.Sprint(own[key]) {
			differing++
		}
	}
	switch path, _ := own["path"].(string); {
	case host != target.URL.Host:
		return differing == 0 && levenshtein.ComputeDistance(host, target.URL.Host) <= 2
	case !within(entry["path"], path):
		return differing == 0
	}
	return differing == 1 || name == subject
}

// Correct returns an existing entry, through which nothing is reached, with what e needs and no grant beyond
// that but variables and addresses. covers says that it covers the target already; else what differs in
// naming the target is as in e.
func (e Entry) Correct(name string, existing map[string]any, covers bool) Entry {
	own, corrected := e.Value(), maps.Clone(existing)
	for key := range existing {
		needed, ok := own[key]
		switch {
		case ok && slices.Contains([]string{"headers", "secrets", "from_call"}, key):
			corrected[key] = slices.DeleteFunc(texts(existing[key]), func(has string) bool {
				return !slices.ContainsFunc(texts(needed), func(text string) bool {
					return has == text || key == "headers" && strings.EqualFold(has, text)
				})
			})
		case !ok && slices.Contains([]string{"headers", "secrets", "from_call", "stdin", "interpreter", "unpinned", "in_tree"}, key):
			delete(corrected, key)
		}
	}
	if !covers {
		for _, key := range naming {
			if delete(corrected, key); own[key] != nil {
				corrected[key] = own[key]
			}
		}
		if path, _ := own["path"].(string); !within(existing["path"], path) {
			corrected["path"] = path
		}
		delete(corrected, "rest")
		if path := corrected["path"]; path == "" {
			delete(corrected, "path")
		}
	}
	return e.Widen(name, corrected)
}

// Changes says in which fields an entry differs from an existing one, a field each, as an editor's steps.
func (e Entry) Changes(existing map[string]any) (changes []string) {
	own := e.Value()
	keys := maps.Clone(existing)
	maps.Copy(keys, own)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		before, had := existing[key]
		after, has := own[key]
		switch {
		case !had:
			changes = append(changes, fmt.Sprintf("add `%s: %s`", key, value(after)))
		case !has:
			changes = append(changes, fmt.Sprintf("remove `%s: %s`", key, value(before)))
		case value(before) != value(after):
			changes = append(changes, fmt.Sprintf("change `%s: %s` to `%s`", key, value(before), value(after)))
		}
	}
	return changes
}

// within reports whether the path of an entry, by default /, contains a path.
func within(entry any, path string) bool {
	of, _ := entry.(string)
	return strings.HasPrefix(strings.TrimSuffix(path, "/")+"/", strings.TrimSuffix(of, "/")+"/")
}
