package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"time"

	"github.com/catalogd/catalogd"
)

// completable are the names that no shell needs to quote. A daemon of another version, or something else that answers at
// its address, has no way to put more than a name on a command line.
var completable = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@/-]*$`)

// branches returns the branches to complete.
func (l *line) branches(e *env) []candidate {
	return l.look(e, func(ctx context.Context, c *catalogd.Catalog) (found []candidate, err error) {
		for _, name := range c.Branches() {
			found = append(found, candidate{word: name})
		}
		return found, nil
	}, "branches")
}

// tools returns the tools of the branch that the command line names.
func (l *line) tools(e *env) []candidate {
	i := 0
	for ; i < len(l.node.Positional) && l.node.Positional[i].Name != "branch"; i++ {
	}
	var branch string
	switch given := l.flags["branch"]; {
	case i < len(l.node.Positional) && i < len(l.args):
		branch = l.args[i]
	case len(given) > 0:
		branch = given[0]
	default:
		return nil
	}
	found := l.look(e, func(ctx context.Context, c *catalogd.Catalog) (found []candidate, err error) {
		tools, err := c.Branch(branch).Tools()
		for _, t := range tools {
			found = append(found, candidate{t.Name, t.Description})
		}
		return found, err
	}, "branches", branch, "tools")
	return slices.DeleteFunc(found, func(f candidate) bool { return slices.Contains(l.args, f.word) })
}

// look asks the daemon of --server for the names at a path, else the catalog. Whatever goes wrong, or takes longer than
// completeTime, is written to stderr, and nothing is completed: the command itself says it better.
func (l *line) look(e *env, here func(context.Context, *catalogd.Catalog) ([]candidate, error), path ...string) []candidate {
	limit := completeTime
	if given, err := time.ParseDuration(os.Getenv(completeTimeVariable)); err == nil && given > 0 {
		limit = given
	}
	ctx, cancel := context.WithTimeout(e.ctx, limit)
	defer cancel()
	type answer struct {
		found []candidate
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		var a answer
		if server := l.flags["server"]; len(server) > 0 && server[len(server)-1] != serverHere {
			a.found, a.err = askNames(ctx, server[len(server)-1], path...)
		} else {
			a.found, a.err = l.open(ctx, e, here)
		}
		answers <- a
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(e.stderr, "catalogd: no answer within", limit)
		return nil
	case a := <-answers:
		if a.err != nil {
			fmt.Fprintln(e.stderr, "catalogd:", a.err)
		}
		return slices.DeleteFunc(a.found, func(f candidate) bool { return !completable.MatchString(f.word) })
	}
}

// open opens the catalog of the command line for one look.
func (l *line) open(ctx context.Context, e *env, here func(context.Context, *catalogd.Catalog) ([]candidate, error)) ([]candidate, error) {
	dir := l.dir()
	if _, err := os.Stat(dir + "/schema.cue"); err != nil {
		return nil, err // nothing to compile
	}
	args := []string{"list", "-C", dir}
	for _, tag := range l.flags["tag"] {
		args = append(args, "-t", tag)
	}
	var c cli // for the defaults of its flags
	if _, err := newParser(&c, e.stderr, e.stderr, func(int) {}).Parse(args); err != nil {
		return nil, err
	}
	looking := *e
	looking.ctx = ctx
	catalog, err := looking.opened(c.List.catalogFlags, dir)
	if err != nil {
		return nil, err
	}
	defer catalog.Close()
	return here(ctx, catalog)
}

// askNames asks a daemon for a list of what has a name and a description.
func askNames(ctx context.Context, server string, path ...string) (found []candidate, err error) {
	base, err := url.Parse(server)
	if err != nil || base.Host == "" {
		return nil, notURL(server)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath(path...).String(), nil)
	if err != nil {
		return nil, err
	}
	raw, status, err := ask(req)
	if err != nil {
		return nil, err
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("%s answered with status %d", req.URL, status)
	}
	type named struct{ Name, Description string }
	var list []named
	var tools struct{ Tools []named }
	if err := json.Unmarshal(raw, &list); err != nil {
		if json.Unmarshal(raw, &tools) != nil {
			return nil, errors.Join(fmt.Errorf("the answer of %s is no list of names", req.URL), err)
		}
		list = tools.Tools
	}
	for _, n := range list {
		found = append(found, candidate{n.Name, n.Description})
	}
	return found, nil
}
