package main

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/internal/clients"
	"github.com/catalogd/catalogd/problem"
)

type exportCmd struct {
	MCPConfig exportConfigCmd `cmd:"" name:"mcp-config" help:"Write the configuration with which an MCP client reaches a branch."`
}

type exportConfigCmd struct {
	Branch string `arg:"" help:"The branch."`

	Client        string `required:"" placeholder:"NAME" help:"The client: claude-code, claude-desktop, cline, continue, cursor, gemini-cli, jetbrains, librechat, opencode, vscode, windsurf or zed."`
	Server        string `xor:"how" placeholder:"URL" help:"The daemon; by default the one that serves this directory, or http://127.0.0.1:8420 if none runs."`
	Stdio         bool   `xor:"how" help:"Let the client start catalogd stdio, without a daemon."`
	TokenVariable string `placeholder:"VAR" help:"The environment variable in which the client has its token, for a daemon with --tokens; by default CATALOGD_TOKEN if the daemon answers that it wants one."`
	Merge         string `placeholder:"FILE" help:"Put the entry into this file of the client's, and keep all else of it, instead of printing it."`
	As            string `placeholder:"NAME" help:"The server's name in the client; by default catalogd for the branch default, and catalogd-BRANCH for another."`
	State         string `placeholder:"DIR" help:"The daemon's state directory, by default catalogd's own in the user's state directory."`
	Dir           string `short:"C" help:"The catalog's root; by default the nearest one, from the working directory upwards."`
	catalogFlags
}

// Run prints a whole file to standard output, to be written or merged by hand, or merges the entry into a file;
// where it belongs goes to standard error. The branch must be one of the catalog, unless --server names a daemon,
// which may have another.
func (c *exportConfigCmd) Run(e *env) error {
	client, err := clients.Named(c.Client)
	if err != nil {
		return err
	}
	if c.TokenVariable != "" && !clients.ValidVariable.MatchString(c.TokenVariable) {
		return errors.New("--token-variable takes the name of an environment variable, such as CATALOGD_TOKEN, and never the token")
	}
	if !clients.ValidName.MatchString(c.Branch) {
		return fmt.Errorf("%q is no name of a branch: it has letters, digits, - and _", c.Branch)
	}
	switch {
	case c.As == "" && c.Branch == "default":
		c.As = "catalogd"
	case c.As == "":
		c.As = "catalogd-" + c.Branch
	case !clients.ValidName.MatchString(c.As):
		return errors.New("--as takes letters, digits, - and _")
	}
	server := clients.Server{Name: c.As, Token: c.TokenVariable}
	var needs []string
	if c.Server == "" {
		if needs, err = c.needs(e); err != nil {
			return err
		}
	}
	if c.Stdio || client.StdioOnly && c.Server == "" {
		dir, err := e.root(c.Dir)
		if err == nil {
			dir, err = filepath.Abs(dir)
		}
		if err != nil {
			return err
		}
		if server.Command, err = os.Executable(); err != nil {
			return err
		}
		server.Args, server.Env = []string{"stdio", "-C", dir, "--branch", c.Branch}, needs
	} else {
		known, err := c.find(e)
		if err != nil {
			return err
		}
		if server.URL, err = c.address(); err != nil {
			return err
		}
		if known && server.Token == "" {
			if err := c.askForToken(e, &server); err != nil {
				return err
			}
		}
	}
	entry, err := client.Entry(server)
	if err != nil {
		return err
	}
	if c.Merge != "" {
		return c.merge(e, client, server, entry.Notes)
	}
	if e.json {
		return e.printJSON(struct {
			Client  string   `json:"client"`
			File    string   `json:"file"`
			Docs    string   `json:"docs"`
			Config  string   `json:"config"`
			Install string   `json:"install,omitempty"`
			Notes   []string `json:"notes"`
		}{client.Name, client.File, client.Docs, string(entry.Config), entry.Install, append([]string{}, entry.Notes...)})
	}
	if _, err := e.stdout.Write(entry.Config); err != nil {
		return err
	}
	fmt.Fprintf(e.stderr, "for %s: %s\n", client.Title, client.File)
	if entry.Install != "" {
		fmt.Fprintf(e.stderr, "or at once: %s\n", entry.Install)
	}
	for _, n := range entry.Notes {
		fmt.Fprintln(e.stderr, n)
	}
	return nil
}

// needs returns the names of the environment variables in which the secrets are that the branch's tools, and servers
// that pass on more than tools, get by the policy. It fails for a branch that the catalog does not have.
func (c *exportConfigCmd) needs(e *env) ([]string, error) {
	catalog, err := e.opened(c.catalogFlags, c.Dir)
	if err != nil {
		return nil, err
	}
	defer catalog.Close()
	tools, err := catalog.Branch(c.Branch).Tools()
	if err != nil {
		return nil, err
	}
	servers, declared := map[string]bool{}, map[problem.Position]bool{}
	for _, t := range tools {
		declared[t.Pos] = true
		if t.Binding.MCP != nil {
			servers[t.Binding.MCP.Server] = true
		}
	}
	for _, s := range catalog.Status().Servers {
		servers[s.Name] = servers[s.Name] || s.Forward != nil
	}
	names := map[string]bool{}
	for _, s := range catalog.Secrets() {
		name, ok := strings.CutPrefix(s.Reference, "env:")
		if ok && slices.ContainsFunc(s.Users, func(u catalogd.SecretUser) bool {
			return u.Kind == "server" && servers[u.Name] || declared[u.Pos]
		}) {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names)), nil
}

// find sets the daemon if none is named: the one that serves the directory, else the default address, at which none
// is known to run.
func (c *exportConfigCmd) find(e *env) (known bool, err error) {
	if c.Server != "" && c.Server != serverHere {
		return true, nil
	}
	at := placeFlags{dir: c.Dir, state: c.State}
	if c.Server, err = e.server(c.Server, at, true); err != nil || c.Server != "" {
		return true, err
	}
	c.Server = "http://127.0.0.1:8420"
	fmt.Fprintf(e.stderr, "no daemon serves %s; this is for one at %s, or name another with --server\n",
		e.place(at), c.Server)
	return false, nil
}

// askForToken sets the variable of a token if the daemon wants one. A daemon that can't be asked may run later.
func (c *exportConfigCmd) askForToken(e *env, server *clients.Server) error {
	wants, err := wantsToken(e.ctx, c.Server)
	switch {
	case e.ctx.Err() != nil:
		return err
	case err != nil:
		fmt.Fprintf(e.stderr, "whether the daemon wants a token could not be asked: %v; for one with --tokens, "+
			"give --token-variable %s\n", err, tokenVariable)
	case wants:
		server.Token = tokenVariable
		fmt.Fprintf(e.stderr, "the daemon wants a token: put one of `catalogd token create` into the client's environment "+
			"as %s\n", tokenVariable)
	}
	return nil
}

// address is the branch's address at the daemon.
func (c *exportConfigCmd) address() (string, error) {
	base, err := url.Parse(c.Server)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" || base.User != nil ||
		strings.ContainsAny(c.Server, "?#") {
		return "", notURL(c.Server)
	}
	return base.JoinPath("branches", c.Branch, "mcp").String(), nil
}
