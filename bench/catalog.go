package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// catalog writes a catalog in dir that discovers everything at the upstream's address, with the policy that `catalogd
// init` writes, and locks it.
func catalog(program, dir, upstream string) error {
	if err := catalogd(program, "", "init", dir); err != nil {
		return err
	}
	starter, err := filepath.Glob(filepath.Join(dir, "catalog", "*.cue"))
	if err != nil {
		return err
	}
	for _, file := range starter {
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	_, port, _ := strings.Cut(upstream, ":")
	for name, text := range map[string]string{
		"catalog/upstream.cue": fmt.Sprintf(`package catalog

servers: upstream: {
	transport: http: url: "http://%s/mcp"
	maxConnections: 64
	discover: {}
}
branches: default: {}
`, upstream),
		"policy/trust/data.yaml": fmt.Sprintf(`entries:
  upstream:
    scheme: http
    host: 127.0.0.1
    port: %s
    path: /mcp
    addresses: [127.0.0.0/8]
    max_connections: 64
`, port),
		"policy/access/data.yaml": "branches:\n  default:\n    tools: [\"*\"]\nhide: []\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), []byte(text), 0o600); err != nil {
			return err
		}
	}
	// What an upstream says of its tools is locked: the tools are read-only, so they are locked with the effect read.
	return catalogd(program, dir, "lock")
}

func catalogd(program, dir string, args ...string) error {
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("catalogd %s: %w: %s", args[0], err, out)
	}
	return nil
}
