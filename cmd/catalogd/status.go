package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/serve"
	"github.com/catalogd/catalogd/problem"
)

type statusCmd struct {
	Server string `default:"http://127.0.0.1:8420" placeholder:"URL" help:"The daemon to ask."`
}

// Run exits 0 where the newest files are served, 1 where they aren't.
func (c *statusCmd) Run(e *env) error {
	s, brief, err := askStatus(e.ctx, c.Server)
	if err != nil {
		return err
	}
	switch {
	case brief != nil && e.json:
		err = e.printJSON(brief)
	case brief != nil:
		err = e.brief(*brief)
	case e.json:
		err = e.printJSON(s)
	default:
		err = e.status(*s)
	}
	healthy := brief != nil && brief.Healthy || s != nil && s.Healthy
	if err == nil && !healthy {
		return errFailed
	}
	return err
}

// askStatus asks a daemon how it is. Only one of both answers is there: what every bearer of a token is told is brief.
func askStatus(ctx context.Context, server string) (*serve.Status, *serve.Brief, error) {
	base, err := url.Parse(server)
	if err != nil || base.Host == "" {
		return nil, nil, notURL(server)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath("status").String(), nil)
	if err != nil {
		return nil, nil, err
	}
	raw, code, err := ask(req)
	if err != nil {
		return nil, nil, err
	}
	var s serve.Status
	var b serve.Brief
	if err := errors.Join(json.Unmarshal(raw, &b), json.Unmarshal(raw, &s)); err != nil || code != http.StatusOK {
		return nil, nil, fmt.Errorf("%s answered status %d, which is no status of catalogd", req.URL, code)
	}
	if b.Restricted {
		return nil, &b, nil
	}
	return &s, nil, nil
}

func (e *env) brief(b serve.Brief) error {
	_, err := fmt.Fprintf(e.stdout, "%s (catalogd %s)\ngeneration %s, since %s\n(the rest is for tokens made with --admin)\n",
		health(b.Healthy), b.Version, short(b.Generation.ID), b.Generation.Since.Local().Format(time.RFC3339))
	return err
}

func health(healthy bool) string {
	if healthy {
		return "healthy"
	}
	return "degraded: the newest files are not served"
}

func (e *env) status(s serve.Status) error {
	fmt.Fprintf(e.stdout, "%s (catalogd %s)\n", health(s.Healthy), s.Version)
	g := s.Generation
	fmt.Fprintf(e.stdout, "generation %s, %s, since %s\n", short(g.ID), g.Adopted, g.Since.Local().Format(time.RFC3339))
	fmt.Fprintf(e.stdout, "policy %s\n", short(g.Policy))
	fmt.Fprintf(e.stdout, "%s (hidden: %d), branches: %d\n", count(g.Tools, "tool"), g.Hidden, g.Branches)
	for _, server := range s.Servers {
		line := fmt.Sprintf("server %s: %s", server.Name, server.State)
		if server.Trust != "" {
			line += ", trusted by entry " + server.Trust
		}
		if server.Error != "" {
			line += ": " + server.Error
		}
		fmt.Fprintln(e.stdout, line)
	}
	if t := s.Tokens; t != nil {
		fmt.Fprintf(e.stdout, "tokens: %d good\n", t.Good)
		if t.Failed != nil {
			fmt.Fprintf(e.stdout, "the file of tokens is refused since %s, and the last good one goes on: %s\n", t.Failed.Since.Local().Format(time.RFC3339), t.Failed.Error)
		}
	}
	for _, w := range s.Warnings {
		fmt.Fprintln(e.stdout, w)
	}
	if s.Failed != nil {
		fmt.Fprintf(e.stdout, "\nrefused at %s (%s):\n", s.Failed.At.Local().Format(time.RFC3339), s.Failed.Reason)
		for _, p := range s.Failed.Problems {
			fmt.Fprintln(e.stdout, p)
		}
		if c := s.Failed.Candidate; c != nil {
			e.candidate(*c)
		}
	}
	return nil
}

// candidate says what a generation that was not adopted would have changed.
func (e *env) candidate(c serve.CandidateStatus) {
	fmt.Fprintf(e.stdout, "it has %s, branches: %d; beside what is served:\n", count(c.Tools, "tool"), c.Branches)
	if c.Commit.Hash != "" {
		clean := ""
		if !c.Commit.Clean {
			clean = ", with further edits"
		}
		fmt.Fprintf(e.stdout, "  commit %s%s\n", c.Commit.Hash, clean)
	}
	list := func(what string, names []string) {
		if len(names) > 0 {
			fmt.Fprintf(e.stdout, "  %s: %s\n", what, problem.Printable(strings.Join(names, ", ")))
		}
	}
	visible := func(all []decision.Visibility) (names []string) {
		for _, v := range all {
			names = append(names, v.Branch+"/"+v.Tool)
		}
		return names
	}
	trusted := func(all []decision.TrustedServer) (names []string) {
		for _, s := range all {
			names = append(names, s.Name+" by "+s.Trust)
		}
		return names
	}
	d := c.Changes
	list("tools added", d.ToolsAdded)
	list("tools removed", d.ToolsRemoved)
	list("tools changed", d.ToolsChanged)
	list("servers added", d.ServersAdded)
	list("servers removed", d.ServersRemoved)
	list("servers changed", d.ServersChanged)
	list("branches added", d.BranchesAdded)
	list("branches removed", d.BranchesRemoved)
	list("visibility gained", visible(d.VisibilityGained))
	list("visibility lost", visible(d.VisibilityLost))
	list("trust gained", trusted(d.TrustGained))
	list("trust lost", trusted(d.TrustLost))
	if d.PolicyChanged {
		fmt.Fprintln(e.stdout, "  the policy differs")
	}
	list("policy tests that fail", c.Tests.Failures)
}

// short is a digest as people read it: the algorithm and 12 digits.
func short(digest string) string {
	const digits = len("sha256:") + 12
	return digest[:min(len(digest), digits)]
}
