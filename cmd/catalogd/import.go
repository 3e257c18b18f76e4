package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/internal/egress"
	"github.com/catalogd/catalogd/internal/importer"
	"github.com/catalogd/catalogd/problem"
)

type importCmd struct {
	MCPConfig mcpConfigCmd `cmd:"" name:"mcp-config" help:"Write the MCP servers of a client's or editor's configuration as CUE; it creates no trust."`
}

type mcpConfigCmd struct {
	File  string   `arg:"" help:"The client's configuration, such as .mcp.json or claude_desktop_config.json."`
	Names []string `arg:"" optional:"" help:"The servers to import, as the file calls them; by default all that are not disabled."`

	Client string `placeholder:"NAME" help:"The client whose file it is, as catalogd export mcp-config has it; by default it is recognized by what the file has."`
	Output string `short:"o" xor:"to" placeholder:"FILE" help:"Write to a new file."`
	Dir    string `xor:"to" placeholder:"DIR" help:"Write to a new file of the catalog in this directory, if it declares none of the servers."`
	catalogFlags
}

// Run writes to standard output, or to a new file; it overwrites nothing. Notes go to standard error. It
// exits with 1 if a server could not be imported or needs a hand, and for a catalog that already declares one
// of the servers.
func (c *mcpConfigCmd) Run(e *env) error {
	data, err := readConfig(c.File)
	if err != nil {
		return err
	}
	cfg := importer.Config{File: filepath.ToSlash(c.File), Names: c.Names, Client: c.Client}
	if c.Dir != "" {
		if cfg.Root, err = filepath.Abs(c.Dir); err != nil {
			return err
		}
	}
	cfg.Resolve = func(command string) (string, error) {
		if cfg.Root == "" && !filepath.IsAbs(command) && strings.ContainsRune(command, '/') {
			return "", nil // relative to a catalog that is not known
		}
		return egress.Resolve(command, cfg.Root)
	}
	imported, err := importer.Read(data, cfg)
	var refused *importer.RefusedError
	if errors.As(err, &refused) {
		fmt.Fprintf(e.stderr, "%v\n", err)
		return errFailed
	}
	if err != nil {
		return err
	}
	to := c.Output
	if c.Dir != "" {
		if err := c.conflicts(e, imported.Servers); err != nil {
			return err
		}
		to = filepath.Join(c.Dir, "catalog", fileName(c.File)+".cue")
	}
	if to != "" {
		if err := writeNew(to, imported.CUE); err != nil {
			return err
		}
	}
	return c.report(e, imported, to)
}

// readConfig reads the file up to the size limit of an import plus one byte, so that a larger file is
// reported as too large.
func readConfig(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, importer.MaxBytes+1))
}

// conflicts prints each server that the catalog already declares, with both positions.
func (c *mcpConfigCmd) conflicts(e *env, servers []importer.Server) error {
	catalog, err := e.opened(c.catalogFlags, c.Dir)
	var refused *catalogd.RefusedError
	isOther := func(p problem.Problem) bool { return p.Code != problem.NoCatalog }
	if errors.As(err, &refused) && isRoot(c.Dir) && !slices.ContainsFunc(refused.Problems, isOther) {
		return nil // these will be its first declarations
	}
	if err != nil {
		return err
	}
	defer catalog.Close()
	declared := map[string]problem.Position{}
	for _, r := range catalog.ConnectDecisions() {
		if r.Kind == "server" {
			declared[r.Name] = r.Pos
		}
	}
	found := false
	for _, s := range servers {
		if at, ok := declared[s.Name]; ok {
			found = true
			fmt.Fprintf(e.stderr, "%s: server %q is declared already at %s; take one away, or import the others by name\n",
				problem.Printable(s.Position.String()), s.Name, at)
		}
	}
	if found {
		fmt.Fprintln(e.stderr, "nothing was written")
		return errFailed
	}
	return nil
}

var notInName = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// fileName returns the name of the file without its extension, changed to a name that CUE reads: CUE ignores
// files that begin with _ or a full stop.
func fileName(path string) string {
	base := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	if base == "" {
		base = strings.TrimPrefix(filepath.Ext(path), ".")
	}
	name := strings.Trim(notInName.ReplaceAllString(base, "_"), "_")
	if name == "" {
		return "imported"
	}
	return name
}

func writeNew(path string, data []byte) error {
	switch _, err := os.Lstat(path); {
	case err == nil:
		return fmt.Errorf("%s exists already, and nothing was written; take it away, or name another file with -o", path)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return writeFile(path, data)
}

func (c *mcpConfigCmd) report(e *env, imported *importer.Import, to string) error {
	holes, declared := 0, 0
	names := []string{}
	for _, s := range imported.Servers {
		holes += s.Holes
		if s.Holes == 0 {
			declared++
		}
		names = append(names, s.Name)
	}
	var failed error
	if holes > 0 || len(imported.Refused) > 0 {
		failed = errFailed
	}
	if e.json {
		out := struct {
			Client  string   `json:"client"`
			Servers []string `json:"servers"`
			Written string   `json:"written,omitempty"`
			CUE     string   `json:"cue,omitempty"`
			Holes   int      `json:"holes"`
			Refused []string `json:"refused"`
			Notes   []string `json:"notes"`
		}{Client: imported.Client, Servers: names, Written: to, Holes: holes, Refused: texts(imported.Refused), Notes: texts(imported.Notes)}
		if to == "" {
			out.CUE = string(imported.CUE)
		}
		return errors.Join(e.printJSON(out), failed)
	}
	if to == "" {
		if _, err := e.stdout.Write(imported.CUE); err != nil {
			return err
		}
	} else {
		fmt.Fprintln(e.stdout, to)
	}
	if imported.Trait == "" {
		fmt.Fprintf(e.stderr, "read as the configuration of %s\n", imported.Title)
	} else {
		fmt.Fprintf(e.stderr, "read as the configuration of %s, by %s; --client names another\n", imported.Title, imported.Trait)
	}
	for _, n := range imported.Refused {
		fmt.Fprintf(e.stderr, "%s (not imported)\n", n)
	}
	for _, n := range imported.Notes {
		fmt.Fprintln(e.stderr, n)
	}
	fmt.Fprintf(e.stderr, "%s imported, and none trusted: see the end of what was written\n", count(declared, "server"))
	if holes > 0 {
		fmt.Fprintf(e.stderr, "%s written as a comment, with %s to fill in\n", count(len(names)-declared, "server"), count(holes, "place"))
	}
	if n := len(imported.Refused); n > 0 {
		fmt.Fprintf(e.stderr, "%s to import otherwise\n", count(n, "problem"))
	}
	return failed
}

func texts(notes []importer.Note) []string {
	out := make([]string, len(notes))
	for i, n := range notes {
		out[i] = n.String()
	}
	return out
}
