package main

import (
	"encoding/json"
	"errors"
	"net/url"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/clients"
	"github.com/catalogd/catalogd/internal/httpapi"
)

// principalFlags say who would see or call something. They mean the same in every command, here and through a
// daemon.
type principalFlags struct {
	Principal string   `placeholder:"NAME" help:"Who would see or call it; the local operator by default, and through a daemon whoever asks."`
	Group     []string `help:"A group that the principal is in; may be given several times. A daemon knows those of a token."`
	Admin     bool     `help:"The principal's token has --admin."`
}

var errPrincipal = errors.New("--group and --admin are of a principal; name it with --principal")

// complete returns an error if there is something about a principal that is not named.
func (f principalFlags) complete() error {
	if f.Principal == "" && (len(f.Group) > 0 || f.Admin) {
		return errPrincipal
	}
	return nil
}

// principal returns who is asked about in the files.
func (f principalFlags) principal() (decision.Principal, error) {
	if err := f.complete(); err != nil || f.Principal == "" {
		return decision.Local(), err
	}
	return decision.Principal{
		Name: f.Principal, Groups: append([]string{}, f.Group...), Admin: f.Admin,
		Local: f.Principal == decision.Local().Name,
	}, nil
}

// query adds the principal to the query of a request to a daemon.
func (f principalFlags) query(q url.Values) error {
	if err := f.complete(); err != nil || f.Principal == "" {
		return err
	}
	q.Set("principal", f.Principal)
	for _, g := range f.Group {
		q.Add("group", g)
	}
	if f.Admin {
		q.Set("admin", "true")
	}
	return nil
}

// call returns what a daemon is asked about.
func (f principalFlags) call(branch, tool, args string) (httpapi.AskedCall, error) {
	return httpapi.AskedCall{
		Branch: branch, Tool: tool, Arguments: json.RawMessage(args),
		Principal: f.Principal, Groups: f.Group, Admin: f.Admin,
	}, f.complete()
}

// repeated returns the flags as they are written on a command line, each after a space.
func (f principalFlags) repeated() (words string) {
	if f.Principal == "" {
		return ""
	}
	words = " --principal " + clients.Shell(f.Principal)
	for _, g := range f.Group {
		words += " --group " + clients.Shell(g)
	}
	if f.Admin {
		words += " --admin"
	}
	return words
}

// askedFlags are those of commands that ask about a call which is not made, here or of a daemon.
type askedFlags struct {
	principalFlags
	Server string `placeholder:"URL" help:"Ask a running daemon, such as http://127.0.0.1:8420, or here for the one that serves this directory; by default the environment's CATALOGD_SERVER. Conversation branches are there. It takes a token made with --admin."`
}

// viewFlags are those of commands that show what a branch shows somebody, here or of a daemon.
type viewFlags struct {
	principalFlags
	Server string `placeholder:"URL" help:"Ask a running daemon, such as http://127.0.0.1:8420, or here for the one that serves this directory; by default the environment's CATALOGD_SERVER. Conversation branches are there. It takes a token made with --admin to name another principal."`
}

// asked returns the address of the daemon to ask, empty if the files are asked: those of a revision or a
// named directory always, unless the command line names a daemon too, which is an error.
func (e *env) asked(server, revision, dir string) (string, error) {
	if server == "" && (revision != "" || dir != "") {
		return "", nil
	}
	server, err := e.server(server, placeFlags{}, false)
	switch {
	case err != nil || server == "":
		return "", err
	case dir != "" || revision != "":
		return "", errors.New("a daemon answers by what it serves; leave out --at and -C, or --server")
	}
	base, err := url.Parse(server)
	if err != nil || base.Host == "" {
		return "", notURL(server)
	}
	return server, nil
}
