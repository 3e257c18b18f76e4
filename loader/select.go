package loader

import (
	"path"
	"strings"
)

// skipped reports whether the entry at p, relative to the root, is excluded from a catalog whatever it
// contains: hidden files, temporary files of editors, and what CUE ignores too. Below policy/ a leading
// underscore does not exclude a file, because OPA reads such files: a rule that denies must not be missed.
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
	return name == "4913" || // vim's test file for write access
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
	// Stock OPA also reads data under a name other than data.yaml. It is read here so that the policy can
	// refuse it: a deny list that is not loaded must not look effective.
	switch path.Ext(name) {
	case ".rego", ".json", ".yaml", ".yml":
		return true
	}
	return false
}

const (
	modulePath = "cue.mod/module.cue"
	// lockPath is the lock of discovered tools, which internal/lockfile reads.
	lockPath   = "catalog.lock.json"
	schemaPath = "schema.cue"
	rootName   = "catalog"
)
