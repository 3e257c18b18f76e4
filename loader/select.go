package loader

import (
	"path"
	"strings"
)

// skipped reports whether the entry at p, relative to the root, is not part of a catalog, whatever it holds: hidden
// files, what editors leave behind, and what CUE doesn't look at either. Below policy/ a leading underscore counts,
// because OPA reads such files: a rule that denies must not go missing.
func skipped(p string, dir bool) bool {
	name := path.Base(p)
	if strings.HasPrefix(name, ".") {
		return true
	}
	if strings.HasPrefix(name, "_") && !strings.HasPrefix(p, "policy/") {
		return true
	}
	if dir {
		return name == "node_modules"
	}
	return name == "4913" || // vim, to try out whether it may write
		strings.HasSuffix(name, "~") || strings.HasSuffix(name, ".swp") ||
		strings.HasPrefix(name, "#") && strings.HasSuffix(name, "#")
}

// wanted reports whether the file at p, relative to the root, is read.
func wanted(p string) bool {
	if p == modulePath || p == lockPath {
		return true
	}
	if strings.HasPrefix(p, "cue.mod/") {
		return false
	}
	name := path.Base(p)
	if path.Ext(name) == ".cue" {
		return true
	}
	if !strings.HasPrefix(p, "policy/") {
		return false
	}
	// Data under another name than data.yaml counts for stock OPA, so it is read, for the policy to refuse it: a deny list
	// that nobody reads must not look like one that holds.
	switch path.Ext(name) {
	case ".rego", ".json", ".yaml", ".yml":
		return true
	}
	return false
}

const (
	modulePath = "cue.mod/module.cue"
	// lockPath is the lock of discovered tools, which internal/lock reads.
	lockPath   = "catalog.lock.json"
	schemaPath = "schema.cue"
	rootName   = "catalog"
)
