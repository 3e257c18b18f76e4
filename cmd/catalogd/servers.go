package main

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/catalogd/catalogd/internal/daemon"
)

type serversCmd struct {
	Server string `placeholder:"URL" help:"The daemon to ask, or here for the one that serves this directory, which is also the default; before that comes the environment's CATALOGD_SERVER. If none runs at an address of this machine, the declared servers of the catalog are shown."`
	State  string `placeholder:"DIR" help:"The daemon's state directory, by default catalogd's own in the user's state directory."`
	Dir    string `short:"C" help:"The catalog's root, for when no daemon runs; by default the nearest one, from the working directory upwards."`
	catalogFlags
}

type listedServers struct {
	// Daemon is the address of the daemon that runs the servers; empty if they are only declared.
	Daemon  string                `json:"daemon,omitempty"`
	Servers []daemon.ServerStatus `json:"servers"`
}

func (c *serversCmd) Run(e *env) error {
	at := placeFlags{dir: c.Dir, state: c.State}
	var err error
	if c.Server, err = e.server(c.Server, at, true); err != nil {
		return err
	}
	var found listedServers
	if c.Server == "" {
		fmt.Fprintf(e.stderr, "no daemon serves %s; this is what the catalog declares\n", e.place(at))
		found, err = c.declared(e)
	} else {
		found, err = c.ask(e)
	}
	var nobody *noDaemonError
	if errors.As(err, &nobody) && nobody.near() {
		fmt.Fprintf(e.stderr, "no daemon answers at %s; this is what the catalog declares\n", nobody.at)
		found, err = c.declared(e)
	}
	if err != nil {
		return err
	}
	if e.json {
		return e.printJSON(found)
	}
	rows := [][]string{{"SERVER", "BRANCH", "TRANSPORT", "STATE", "SINCE", "BREAKER", "RUNNING", "WAITING", "CALLS", "FAILURES", "CONNECTS", "TRUST", "WHY"}}
	for _, s := range found.Servers {
		rows = append(rows, serverRows(s)...)
	}
	return e.table(rows)
}

func (c *serversCmd) ask(e *env) (listedServers, error) {
	s, brief, err := askStatus(e.ctx, c.Server)
	switch {
	case err != nil:
		return listedServers{}, err
	case brief != nil:
		return listedServers{}, fmt.Errorf("%s shows its servers only to tokens made with --admin; set %s to one", c.Server, tokenVariable)
	}
	return listedServers{c.Server, s.Servers}, nil
}

// declared returns the servers that the catalog in the directory declares, with their trust decisions; it
// connects to nothing.
func (c *serversCmd) declared(e *env) (listedServers, error) {
	catalog, err := e.opened(c.catalogFlags, c.Dir)
	if err != nil {
		return listedServers{}, err
	}
	defer catalog.Close()
	return listedServers{Servers: catalog.Status().Servers}, nil
}

// serverRows returns one row for each connection of a server; the first row has the counts of the whole
// server.
func serverRows(s daemon.ServerStatus) (rows [][]string) {
	if len(s.Connections) == 0 {
		return [][]string{{s.Name, "-", "-", s.State, "-", "-", "-", "-", "-", "-", "-", cmp.Or(s.Trust, "-"), cmp.Or(strings.Join(s.Reasons, "; "), s.Error)}}
	}
	for i, c := range s.Connections {
		row := []string{s.Name, cmp.Or(c.Branch, "-"), c.Transport, string(c.State), since(string(c.State), c.Since), c.Breaker, running(c.Transport, c.Calls, c.Waiting, c.MaxConnections), strconv.Itoa(c.Waiting)}
		if i == 0 && s.Counts != nil {
			for _, n := range []uint64{s.Counts.Calls, s.Counts.Failures, s.Counts.Connects} {
				row = append(row, strconv.FormatUint(n, 10))
			}
		} else {
			row = append(row, "", "", "")
		}
		rows = append(rows, append(row, cmp.Or(s.Trust, "-"), cmp.Or(c.LastError, c.Notice)))
	}
	return rows
}

// running formats how many calls run or wait, and over HTTP how many may run.
func running(transport string, calls, waiting, limit int) string {
	if transport == "stdio" {
		return strconv.Itoa(calls)
	}
	return fmt.Sprintf("%d of %d", calls-min(waiting, calls), limit)
}

// since formats when a connection entered its state; a connection that was never used has no date.
func since(state string, t time.Time) string {
	if state == "idle" {
		return "-"
	}
	return t.Local().Format(time.RFC3339)
}
