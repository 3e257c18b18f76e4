package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime/pprof"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/internal/httpapi"
	"github.com/catalogd/catalogd/loader"
)

type serveCmd struct {
	Dir  string `arg:"" optional:"" help:"The catalog's root; by default the nearest one, from the working directory upwards."`
	Addr string `default:"127.0.0.1:8420" help:"The address to listen on; without --tokens a loopback one."`
	// Tokens and Host belong together: without tokens no other host is admitted.
	Tokens          string        `placeholder:"FILE" help:"Accept only bearers of tokens in this file, made by catalogd token create."`
	Host            []string      `placeholder:"NAME" sep:"none" help:"A name by which clients reach the daemon, such as that of a proxy before it; may be given several times. Needs --tokens."`
	RequestStateKey string        `placeholder:"FILE" help:"Seal the state of calls that ask (MCP 2026-07-28) with this key, so that several daemons behind a proxy accept each other's; docs/mcp.md has the conditions."`
	ListTTL         time.Duration `name:"list-ttl" default:"0s" help:"How long clients of MCP 2026-07-28 may use a list of tools without asking again."`
	Quiet           time.Duration `default:"150ms" help:"How long the files must be quiet before a change is read."`
	Poll            time.Duration `default:"5s" help:"How often to check for changes that the operating system did not report."`
	// Profile is for `make bench-proxy` and for operators who want to know what a busy daemon does.
	Profile string `name:"cpu-profile" placeholder:"FILE" help:"Write a CPU profile of the daemon (for go tool pprof) to this file when it ends."`
	servedFlags
}

func (c *serveCmd) Run(e *env) (err error) {
	if c.Profile != "" {
		stop, err := profile(c.Profile)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	if c.Tokens == "" {
		if len(c.Host) > 0 {
			return errors.New("--host needs --tokens: without tokens only this machine is served, by its own names")
		}
		if err := httpapi.CheckAddr(c.Addr); err != nil {
			return err
		}
	}
	// From the start, because an unhandled SIGHUP ends the process.
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	log, started := e.startingLogger()
	cfg, err := c.config(e, c.Dir)
	if err != nil {
		return err
	}
	if err := ownFunctions(&cfg); err != nil {
		return err
	}
	if cfg.DecisionLog, err = c.log(e.stdout); err != nil {
		return err
	}
	cfg.Log, cfg.Tokens, cfg.Hosts = log, c.Tokens, c.Host
	cfg.RequestStateKey, cfg.ListTTL = c.RequestStateKey, c.ListTTL
	c.keep(&cfg)
	cfg.Timing = loader.WatchConfig{Quiet: c.Quiet, Poll: c.Poll, Logger: log}
	other := otherDaemon(e, cfg) // before this one has the address of one that has crashed
	// Listen before building: an address in use is reported at once, not after a long compilation.
	ln, err := net.Listen("tcp", c.Addr)
	if err != nil {
		var listen *net.OpError
		if errors.As(err, &listen) {
			err = listen.Err // without the address
		}
		if other == "http://"+c.Addr {
			return fmt.Errorf("can't listen on %s: a daemon of the same catalog serves there already (catalogd status); "+
				"end it, or choose another address with --addr", c.Addr)
		}
		return fmt.Errorf("can't listen on %s: %w; choose another address with --addr", c.Addr, err)
	}
	built := e.starting(e.logger(slog.LevelInfo)) // which log leaves out
	catalog, err := catalogd.New(e.ctx, cfg)
	built()
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	defer catalog.Close()
	if httpapi.CheckAddr(ln.Addr().String()) != nil {
		log.Warn("tokens and answers cross the network unencrypted unless a proxy before this address speaks TLS", "addr", ln.Addr().String())
	}
	collectLess()
	report, err := newStartReport(catalog, cfg, "http://"+ln.Addr().String(), other)
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	if e.logsJSON() {
		report.log(log)
	} else {
		report.print(e.stderr)
	}
	started()

	ctx, cancel := context.WithCancel(e.ctx)
	defer cancel()
	var loops errgroup.Group
	loops.Go(func() error { return catalog.Run(ctx) })
	loops.Go(func() error { reloadOn(ctx, hangup, catalog); return nil })
	loops.Go(func() error { giveBack(ctx); return nil })
	err = catalog.Serve(ctx, ln)
	cancel()
	return errors.Join(err, loops.Wait())
}

// otherTime bounds how long a start waits for the answers of daemons that are announced, which may hang.
const otherTime = time.Second

// otherDaemon returns the address of a running daemon that serves the same from the same state directory, which two
// may share; empty if there is none, or none answers within otherTime.
func otherDaemon(e *env, cfg catalogd.Config) string {
	if cfg.State == "" {
		return ""
	}
	ctx, cancel := context.WithTimeout(e.ctx, otherTime)
	defer cancel()
	found, err := e.announced(ctx, placeFlags{dir: cfg.Dir, build: cfg.Build, state: cfg.State})
	if err != nil || found == nil { // one that can't prove itself has probably crashed
		return ""
	}
	return found.URL
}

// reloadOn checks the files for changes on every SIGHUP; the outcome is logged.
func reloadOn(ctx context.Context, hangup <-chan os.Signal, catalog *catalogd.Catalog) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangup:
			catalog.Reload(ctx)
		}
	}
}

// profile samples the daemon's CPU time until stop is called.
func profile(name string) (stop func() error, err error) {
	file, err := os.Create(name)
	if err != nil {
		return nil, fmt.Errorf("--cpu-profile: %w", err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, errors.Join(fmt.Errorf("--cpu-profile: %w", err), file.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return file.Close()
	}, nil
}
