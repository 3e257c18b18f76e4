package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/contract/dialect"
	"github.com/catalogd/catalogd/internal/envelope"
	"github.com/catalogd/catalogd/registry"
)

type actCmd struct {
	Branch   string `arg:"" help:"The branch to call through."`
	File     string `arg:"" help:"The file with the provider's message, or - for standard input."`
	Strategy string `default:"concurrent" placeholder:"NAME" help:"concurrent or sequential."`
	OnError  string `name:"on-error" default:"continue" placeholder:"NAME" help:"continue, or stop: begin no further call once one has failed."`
	Dialect  string `placeholder:"NAME" help:"The dialect in which the model was shown the tools, by default the message's own; openai-strict says null for what is left out."`
	Server   string `placeholder:"URL" help:"Ask a running daemon instead of calling in this process, such as http://127.0.0.1:8420, or here for the one that serves this directory; by default the environment's CATALOGD_SERVER."`
	Dir      string `short:"C" help:"The catalog's root; by default the nearest one, from the working directory upwards."`

	Key  string        `name:"idempotency-key" placeholder:"KEY" help:"For tools with a side effect: the idempotency key of a single call; several calls have KEY/1, KEY/2 and so on."`
	Wait time.Duration `default:"30s" help:"How long to wait for a side effect before answering a handle; 0 answers at once. The command ends only when the effect has. With --server, the daemon's own is what counts."`
	// State and Bootstrap are as in callCmd.
	State     string `placeholder:"DIR" help:"The state directory of a daemon that serves this catalog, whose last adopted policy is asked first, by default catalogd's own in the user's state directory; none asks none."`
	Bootstrap bool   `help:"Have the files' own policy decide on them, whatever was adopted before."`
	intentFlags
	catalogFlags
}

// maxActMessage caps a provider's message, as the daemon does.
const maxActMessage = 4 << 20

// Run prints the results in the provider's form. That a call failed is a result, and no failure of the command.
func (c *actCmd) Run(e *env) error {
	order, err := envelope.ParseOrder(c.Strategy, c.OnError)
	if err != nil {
		return err
	}
	d := dialect.MCP
	if c.Dialect != "" {
		if d, err = dialect.Parse(c.Dialect); err != nil {
			return err
		}
	}
	if c.Key != "" {
		if err := registry.CheckIdempotencyKey(c.Key); err != nil {
			return fmt.Errorf("--idempotency-key can't be %w", err)
		}
	}
	message, err := c.read(e)
	if err != nil {
		return err
	}
	if c.Server, err = e.server(c.Server, placeFlags{dir: c.Dir, state: c.State}, false); err != nil {
		return err
	}
	if c.Server != "" {
		out, err := c.remote(e.ctx, message)
		if err != nil {
			return err
		}
		return e.printJSON(out)
	}
	cfg, err := c.config(e, c.Dir)
	if err != nil {
		return err
	}
	stateFlags{c.State, c.Bootstrap}.keep(&cfg)
	c.set(&cfg)
	if err := setWait(&cfg, c.Wait); err != nil {
		return err
	}
	catalog, err := e.open(cfg)
	if err != nil {
		return err
	}
	defer catalog.Close()
	out, err := catalog.Branch(c.Branch).In(d).Keyed(c.Key).Act(e.ctx, message, catalogd.ActOrder(order))
	if err != nil {
		return err
	}
	// No other process executes the intents that this process has staged.
	return errors.Join(e.printJSON(out), catalog.Intents().Settle(e.ctx))
}

// read reads the message.
func (c *actCmd) read(e *env) ([]byte, error) {
	in := e.stdin
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	message, err := io.ReadAll(io.LimitReader(in, maxActMessage+1))
	if err != nil {
		return nil, err
	}
	if len(message) > maxActMessage {
		return nil, fmt.Errorf("%s has more than 4 MiB; a message may have that much", c.File)
	}
	return message, nil
}

// remote has a daemon run the calls.
func (c *actCmd) remote(ctx context.Context, message []byte) (json.RawMessage, error) {
	base, err := url.Parse(c.Server)
	if err != nil || base.Host == "" {
		return nil, notURL(c.Server)
	}
	at := base.JoinPath("branches", c.Branch, "calls")
	query := url.Values{"strategy": {c.Strategy}, "onError": {c.OnError}}
	if c.Dialect != "" {
		query.Set("dialect", c.Dialect)
	}
	at.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at.String(), bytes.NewReader(message))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if c.Key != "" {
		req.Header.Set("Idempotency-Key", c.Key)
	}
	raw, status, err := ask(req)
	if err != nil {
		return nil, err
	}
	var a answer
	var refused string
	_ = json.Unmarshal(raw, &a)                                                              // reason copes with what is not ours
	over := status == http.StatusTooManyRequests && json.Unmarshal(a.Error, &refused) != nil // results that all say so
	switch {
	case status != http.StatusOK && !over:
		return nil, fmt.Errorf("%s answered with status %d: %s", at, status, a.reason(raw))
	case !json.Valid(raw):
		return nil, fmt.Errorf("%s answered with no JSON: %s", at, firstLine(string(raw[:min(len(raw), 200)])))
	}
	return raw, nil
}
