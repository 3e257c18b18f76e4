package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/catalogd/catalogd"
)

type stdioCmd struct {
	Dir    string `short:"C" help:"The catalog's root; by default the nearest one, from the working directory upwards."`
	Branch string `default:"default" help:"The branch to serve."`
	Tokens string `placeholder:"FILE" help:"Serve the bearer of the token in the environment as CATALOGD_TOKEN, which must be one of this file, in place of the operator."`
	servedFlags
}

// Run serves one branch on stdin and stdout. stdout carries only protocol; the log goes to stderr.
func (c *stdioCmd) Run(e *env) error {
	// A client that closes stdout is gone; its calls must end too, so the signal must not end the process
	// first.
	brokenPipe := make(chan os.Signal, 1)
	signal.Notify(brokenPipe, syscall.SIGPIPE)
	defer signal.Stop(brokenPipe)
	cfg, err := c.config(e, c.Dir)
	if err != nil {
		return err
	}
	if err := ownFunctions(&cfg); err != nil {
		return err
	}
	if cfg.DecisionLog, err = c.log(nil); err != nil {
		return err
	}
	secret := os.Getenv(tokenVariable)
	if c.Tokens != "" && secret == "" {
		return errors.New("--tokens needs a token in the environment as " + tokenVariable)
	}
	cfg.Log, cfg.Tokens = e.logger(slog.LevelWarn), c.Tokens
	c.keep(&cfg)
	catalog, err := catalogd.New(e.ctx, cfg)
	if err != nil {
		return e.onStderr(err)
	}
	defer catalog.Close()
	collectLess()
	serve := func(ctx context.Context) error { return catalog.Stdio(ctx, c.Branch, e.stdin, e.stdout) }
	if c.Tokens != "" {
		serve = func(ctx context.Context) error { return catalog.StdioBearer(ctx, secret, c.Branch, e.stdin, e.stdout) }
	} else if _, err := catalog.Branch(c.Branch).Tools(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(e.ctx)
	defer cancel()
	watched := make(chan error, 1)
	go func() { watched <- catalog.Run(ctx) }()
	err = serve(ctx)
	if e.ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = nil // shutdown was requested
	}
	cancel()
	return errors.Join(err, <-watched)
}

// onStderr redirects the output to stderr, because stdout carries only protocol, and returns err.
func (e *env) onStderr(err error) error {
	e.stdout = e.stderr
	return err
}
