package main

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/catalogd/catalogd/internal/buildcache"
	"github.com/catalogd/catalogd/internal/httpapi"
)

const (
	// serverVariable holds a daemon's address for commands that are given none.
	serverVariable = "CATALOGD_SERVER"
	// serverHere as an address is the daemon that serves this directory.
	serverHere = "here"
	// proveTime bounds how long a daemon may take to prove that it is the announced one.
	proveTime = 5 * time.Second
)

// placeFlags say whose daemon is meant: the one that serves a directory or build file.
type placeFlags struct{ dir, build, state string }

// server returns the address of the daemon to ask: given, which is that of --server, else that of the environment, else
// with find the one that serves the directory. It is empty if there is none, or if the command is to do without.
// A directory that is named on the command line comes before the environment. Unless the command line has the
// address, stderr says who is asked.
func (e *env) server(given string, at placeFlags, find bool) (string, error) {
	from := ""
	if set := os.Getenv(serverVariable); given == "" && set != "" && at.dir == "" && at.build == "" {
		given, from = set, ", as "+serverVariable+" says"
	}
	if given != "" && given != serverHere {
		if from != "" {
			fmt.Fprintf(e.stderr, "asking the daemon at %s%s\n", given, from)
		}
		return given, nil
	}
	if given == "" && !find {
		return "", nil
	}
	found, err := e.announced(e.ctx, at)
	if err != nil || found == nil {
		if err == nil && given == serverHere {
			err = noneServes(e.place(at))
		}
		return "", err
	}
	fmt.Fprintf(e.stderr, "asking the daemon at %s, which serves %s\n", found.URL, found.Serves)
	return found.URL, nil
}

// daemonOf is server for a command that needs a daemon.
func (e *env) daemonOf(given string, at placeFlags) (string, error) {
	found, err := e.server(given, at, true)
	if err == nil && found == "" {
		err = noneServes(e.place(at))
	}
	return found, err
}

func noneServes(place string) error {
	return fmt.Errorf("no daemon serves %s; start one with catalogd serve, or name another with --server URL", place)
}

// place names the directory or file of which a daemon is looked for, for messages.
func (e *env) place(at placeFlags) string {
	root, err := e.placeOf(at)
	if err != nil {
		return "this directory"
	}
	return root
}

func (e *env) placeOf(at placeFlags) (string, error) {
	root := at.build
	if root == "" {
		var err error
		if root, err = e.root(at.dir); err != nil {
			return "", err
		}
	}
	return filepath.Abs(root)
}

// announced returns the newest daemon that serves a place and has proved it, nil if none is announced. The
// error of one that is announced and can't prove it says so: something else may answer at its address.
func (e *env) announced(ctx context.Context, at placeFlags) (*buildcache.Announcement, error) {
	root, err := e.placeOf(at)
	if err != nil {
		return nil, err
	}
	state := at.state
	switch state {
	case "none":
		return nil, nil
	case "":
		if state, err = buildcache.DefaultDirectory(); err != nil {
			return nil, nil // no daemon can have announced itself there
		}
	}
	all, err := buildcache.Announced(state, root)
	if err != nil {
		return nil, err
	}
	var failed error
	for _, a := range all {
		err := prove(ctx, a)
		if err == nil {
			return &a, nil
		}
		var nobody *noDaemonError
		if !errors.As(err, &nobody) { // else it has crashed, and nothing else has the address
			failed = errors.Join(failed, err)
		}
	}
	return nil, failed
}

// bareClient follows no redirect and uses no proxy.
func bareClient() *http.Client {
	return &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// wantsToken returns whether a daemon refuses a request without a token.
func wantsToken(ctx context.Context, server string) (bool, error) {
	base, err := url.Parse(server)
	if err != nil || base.Host == "" {
		return false, notURL(server)
	}
	ctx, cancel := context.WithTimeout(ctx, proveTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath("status").String(), nil)
	if err != nil {
		return false, err
	}
	resp, err := bareClient().Do(req)
	if err != nil {
		return false, unanswered(req, server, err)
	}
	return resp.StatusCode == http.StatusUnauthorized, resp.Body.Close()
}

// prove returns nil if the daemon of an announcement answers at its address. No token is sent.
func prove(ctx context.Context, a buildcache.Announcement) error {
	at, err := url.Parse(a.URL)
	if err != nil {
		return fmt.Errorf("the address of a daemon in the state directory can't be used: %w", err)
	}
	addr, err := netip.ParseAddrPort(at.Host)
	if err != nil || at.Scheme != "http" || !addr.Addr().IsLoopback() {
		return fmt.Errorf("the address of a daemon in the state directory is not a loopback one: %q", a.URL)
	}
	ctx, cancel := context.WithTimeout(ctx, proveTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr.String()+"/healthz", nil)
	if err != nil {
		return err
	}
	challenge := rand.Text()
	req.Header.Set(httpapi.ChallengeHeader, challenge)
	resp, err := bareClient().Do(req)
	if err != nil {
		return unanswered(req, strings.TrimSuffix(a.URL, "/"), err)
	}
	if err := resp.Body.Close(); err != nil {
		return err
	}
	want := buildcache.Proof(a.Key, challenge, addr.String())
	if !hmac.Equal([]byte(resp.Header.Get(httpapi.ProofHeader)), []byte(want)) {
		return fmt.Errorf("what answers at %s is not the daemon that serves %s (process %d), which has probably crashed; "+
			"start it again, or name another with --server", a.URL, a.Serves, a.PID)
	}
	return nil
}
