package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/httpapi"
	"github.com/catalogd/catalogd/registry"
)

// askOffers asks a daemon for tools of a branch. The error of names that the branch doesn't show is a
// registry.UnknownError.
func askOffers(ctx context.Context, server, branch string, query url.Values) (*httpapi.ShownTools, error) {
	base, err := url.Parse(server)
	if err != nil {
		return nil, notURL(server)
	}
	at := base.JoinPath("branches", branch, "tools")
	at.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, err
	}
	raw, status, err := ask(req)
	if err != nil {
		return nil, err
	}
	var answered struct {
		httpapi.ShownTools
		httpapi.UnknownTools
	}
	if err := json.Unmarshal(raw, &answered); err != nil {
		return nil, fmt.Errorf("%s answered with status %d, which is not an answer of catalogd", server, status)
	}
	switch {
	case status == http.StatusNotFound && answered.Unknown != nil:
		return nil, &registry.UnknownError{Tools: answered.Unknown}
	case status != http.StatusOK:
		return nil, fmt.Errorf("%s answered with status %d: %s", server, status, answered.Error)
	}
	return &answered.ShownTools, nil
}

// remote returns what a daemon's branches show.
func (c *listCmd) remote(e *env) ([]listedBranch, error) {
	query := url.Values{}
	if err := c.query(query); err != nil {
		return nil, err
	}
	names := []string{c.Branch}
	if c.Branch == "" {
		base, err := url.Parse(c.Server)
		if err != nil {
			return nil, notURL(c.Server)
		}
		at := base.JoinPath("branches")
		at.RawQuery = query.Encode()
		var branches []httpapi.ListedBranch
		if err := (remoteIntents{base}).get(e.ctx, at, &branches); err != nil {
			return nil, err
		}
		names = nil
		for _, b := range branches {
			names = append(names, b.Name)
		}
	}
	query.Set("details", "true")
	listed := []listedBranch{}
	for _, name := range names {
		offers, err := askOffers(e.ctx, c.Server, name, query)
		if err != nil {
			return nil, err
		}
		b, err := listedOffers(name, offers, c.Tokens)
		if err != nil {
			return nil, err
		}
		listed = append(listed, b)
	}
	return listed, nil
}

// listedOffers returns the tools of a branch as a daemon offers them.
func listedOffers(branch string, offers *httpapi.ShownTools, tokens bool) (listedBranch, error) {
	b := listedBranch{Branch: branch, Tools: []listedTool{}}
	declared := map[string]generation.DeclaredTool{}
	for _, d := range offers.Declared {
		declared[d.Tool] = d
	}
	shown := make([]registry.Tool, 0, len(offers.Tools))
	for _, raw := range offers.Tools {
		var t struct {
			Name, Title, Description string
			InputSchema              json.RawMessage
		}
		if err := json.Unmarshal(raw, &t); err != nil {
			return b, fmt.Errorf("reading the daemon's answer: %w", err)
		}
		d := declared[t.Name]
		shown = append(shown, registry.Tool{
			Name: t.Name, Description: t.Description, Args: contract.Spec{Schema: t.InputSchema},
		})
		if d.Deprecated != "" { // which the description for clients begins with
			_, t.Description, _ = strings.Cut(t.Description, "\n")
		}
		b.Tools = append(b.Tools, listedTool{
			Name: t.Name, Title: t.Title, Description: t.Description, Effect: d.Effect, Binding: d.Binding,
			Tags: append([]string{}, d.Tags...), Deprecated: d.Deprecated, Pos: d.Pos,
		})
	}
	if tokens {
		b.count(shown)
	}
	return b, nil
}
