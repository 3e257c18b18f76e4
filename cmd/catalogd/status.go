package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/daemon"
	"github.com/catalogd/catalogd/internal/intent"
	"github.com/catalogd/catalogd/problem"
)

type statusCmd struct {
	Server string `placeholder:"URL" help:"The daemon to ask, or here for the one that serves this directory, which is also the default; before that comes the environment's CATALOGD_SERVER."`
	Dir    string `short:"C" help:"Ask the daemon that serves this directory."`
	State  string `placeholder:"DIR" help:"The daemon's state directory, by default catalogd's own in the user's state directory."`
	Ready  bool   `help:"Only ask whether it serves, for health checks; needs no token."`
}

// Run exits with 0 if the newest files are served, with 1 if they aren't. With --ready any files will do.
func (c *statusCmd) Run(e *env) error {
	server, err := e.daemonOf(c.Server, placeFlags{dir: c.Dir, state: c.State})
	if err != nil {
		return err
	}
	if c.Ready {
		return e.ready(server)
	}
	s, brief, err := askStatus(e.ctx, server)
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

// ready exits with 0 if the daemon serves anything. What it prints says whether those are the newest files.
func (e *env) ready(server string) error {
	base, err := url.Parse(server)
	if err != nil || base.Host == "" {
		return notURL(server)
	}
	req, err := http.NewRequestWithContext(e.ctx, http.MethodGet, base.JoinPath("readyz").String(), nil)
	if err != nil {
		return err
	}
	raw, code, err := ask(req)
	if err != nil {
		return err
	}
	text := problem.Printable(firstLine(string(raw)))
	if e.json {
		err = e.printJSON(map[string]any{"ready": code == http.StatusOK, "text": text})
	} else {
		_, err = fmt.Fprintln(e.stdout, text)
	}
	if err == nil && code != http.StatusOK {
		return errFailed
	}
	return err
}

// askStatus queries the status of a daemon. Only one of the two answers is set: every bearer of a token may
// see the brief one.
func askStatus(ctx context.Context, server string) (*daemon.Status, *daemon.Brief, error) {
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
	var s daemon.Status
	var b daemon.Brief
	if err := errors.Join(json.Unmarshal(raw, &b), json.Unmarshal(raw, &s)); err != nil || code != http.StatusOK {
		return nil, nil, fmt.Errorf("%s answered status %d, which catalogd does not send", req.URL, code)
	}
	if b.Restricted {
		return nil, &b, nil
	}
	return &s, nil, nil
}

func (e *env) brief(b daemon.Brief) error {
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

func (e *env) status(s daemon.Status) error {
	how := health(s.Healthy)
	switch {
	case s.IntentsFailed():
		how = "degraded: calls with a side effect are refused"
	case s.Healthy && s.Generation.Hidden > 0:
		how = fmt.Sprintf("healthy, but %d of %s hidden", s.Generation.Hidden, count(s.Generation.Tools, "tool"))
	}
	fmt.Fprintf(e.stdout, "%s (catalogd %s)\n", how, s.Version)
	g := s.Generation
	fmt.Fprintf(e.stdout, "generation %s, %s, since %s\n", short(g.ID), g.Adopted, g.Since.Local().Format(time.RFC3339))
	fmt.Fprintf(e.stdout, "policy %s\n", short(g.Policy))
	fmt.Fprintf(e.stdout, "%s, branches: %d\n", toolsOf(g), g.Branches)
	if line := hiddenLine(g); line != "" {
		fmt.Fprintln(e.stdout, line)
	}
	if line := secretsLine(s.MissingSecrets); line != "" {
		fmt.Fprintln(e.stdout, problem.Printable(line))
	}
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
			fmt.Fprintf(e.stdout, "the file of tokens is refused since %s, and the last good one stays in effect: %s\n", t.Failed.Since.Local().Format(time.RFC3339), t.Failed.Error)
		}
	}
	if s.Intents != nil {
		if line := intentsLine(*s.Intents); line != "" {
			fmt.Fprintln(e.stdout, line)
		}
	}
	e.unfinished(s)
	for _, w := range s.Warnings {
		fmt.Fprintln(e.stdout, w)
	}
	if s.Failed != nil {
		fmt.Fprintf(e.stdout, "\nrefused at %s (%s):\n", s.Failed.At.Local().Format(time.RFC3339), s.Failed.Reason)
		for _, p := range s.Failed.Problems {
			if p.Severity == problem.Error || !slices.ContainsFunc(s.Warnings, func(w problem.Problem) bool { return w.String() == p.String() }) {
				fmt.Fprintln(e.stdout, p)
			}
		}
		if c := s.Failed.Candidate; c != nil {
			e.candidate(*c)
		}
	}
	return nil
}

// toolsOf counts the tools, and those of them that nobody is shown.
func toolsOf(g daemon.GenerationStatus) string {
	return fmt.Sprintf("%s (hidden: %d)", count(g.Tools, "tool"), g.Hidden+g.Unseen)
}

// hiddenLine says which tools nobody is shown and why; empty if there are none.
func hiddenLine(g daemon.GenerationStatus) string {
	if g.Hidden+g.Unseen == 0 {
		return ""
	}
	const most = 3
	var parts []string
	if g.Unseen > 0 {
		parts = append(parts, count(g.Unseen, "tool")+" that no branch shows")
	}
	for _, h := range g.HiddenTools[:min(most, len(g.HiddenTools))] {
		some := h.Example
		if h.Tools > 1 {
			some = fmt.Sprintf("%s such as %s", count(h.Tools, "tool"), h.Example)
		}
		parts = append(parts, fmt.Sprintf("%s (%s)", some, h.Reason))
	}
	if more := len(g.HiddenTools) - most; more > 0 {
		parts = append(parts, fmt.Sprintf("and for %s more", count(more, "reason")))
	}
	return problem.Printable(fmt.Sprintf("hidden: %s; more: catalogd check, catalogd explain BRANCH TOOL", strings.Join(parts, ", ")))
}

// intentsLine summarises calls with a side effect in one line; "" if there are none.
func intentsLine(x daemon.EffectsStatus) string {
	if x.Failed != "" {
		return "intents: calls with a side effect are refused, because they can't be written down: " + problem.Printable(x.Failed)
	}
	var states []string
	for _, s := range intent.States() {
		if n := x.States[s]; n > 0 {
			states = append(states, fmt.Sprintf("%d %s", n, s))
		}
	}
	if x.Paused {
		return "intents: " + cmp.Or(strings.Join(states, ", "), "none") + "; paused: none begins before catalogd intents resume"
	}
	if len(states) == 0 {
		return ""
	}
	return "intents: " + strings.Join(states, ", ")
}

// unfinished prints what is being built, does not end, or is not decided.
func (e *env) unfinished(s daemon.Status) {
	if b := s.Build; b != nil {
		if b.Since != nil {
			fmt.Fprintf(e.stdout, "a build runs since %s: %s since %s\n", b.Since.Local().Format(time.RFC3339), b.Step, b.StepSince.Local().Format(time.RFC3339))
		}
		if b.Abandoned > 0 {
			fmt.Fprintf(e.stdout, "builds that were broken off and have not ended: %d\n", b.Abandoned)
		}
	}
	for _, u := range s.Undecided {
		fmt.Fprintf(e.stdout, "undecided, and asked again: %s of %s: %s\n", u.Point, u, u.Why)
	}
	if len(s.Overdue) > 0 {
		fmt.Fprintf(e.stdout, "evaluations of the policy that have not ended in time: %d, the first of %s since %s\n",
			len(s.Overdue), s.Overdue[0].Point, s.Overdue[0].Since.Local().Format(time.RFC3339))
	}
}

// candidate prints what a candidate that was not adopted would have changed.
func (e *env) candidate(c daemon.CandidateStatus) {
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

// short shortens a digest for people: the algorithm and 12 digits.
func short(digest string) string {
	const digits = len("sha256:") + 12
	return digest[:min(len(digest), digits)]
}
