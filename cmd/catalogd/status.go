package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/catalogd/catalogd/internal/serve"
)

type statusCmd struct {
	Server string `default:"http://127.0.0.1:8420" placeholder:"URL" help:"The daemon to ask."`
}

// Run exits 0 where the newest files are served, 1 where they aren't.
func (c *statusCmd) Run(e *env) error {
	base, err := url.Parse(c.Server)
	if err != nil || base.Host == "" {
		return notURL(c.Server)
	}
	req, err := http.NewRequestWithContext(e.ctx, http.MethodGet, base.JoinPath("status").String(), nil)
	if err != nil {
		return err
	}
	raw, code, err := ask(req)
	if err != nil {
		return err
	}
	var s serve.Status
	if err := json.Unmarshal(raw, &s); err != nil || code != http.StatusOK {
		return fmt.Errorf("%s answered status %d, which is no status of catalogd", req.URL, code)
	}
	if e.json {
		err = e.printJSON(s)
	} else {
		err = e.status(s)
	}
	if err == nil && !s.Healthy {
		return errFailed
	}
	return err
}

func (e *env) status(s serve.Status) error {
	health := "healthy"
	if !s.Healthy {
		health = "degraded: the newest files are not served"
	}
	fmt.Fprintf(e.stdout, "%s (catalogd %s)\n", health, s.Version)
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
	for _, w := range s.Warnings {
		fmt.Fprintln(e.stdout, w)
	}
	if s.Failed != nil {
		fmt.Fprintf(e.stdout, "\nrefused at %s (%s):\n", s.Failed.At.Local().Format(time.RFC3339), s.Failed.Reason)
		for _, p := range s.Failed.Problems {
			fmt.Fprintln(e.stdout, p)
		}
	}
	return nil
}

// short is a digest as people read it: the algorithm and 12 digits.
func short(digest string) string {
	const digits = len("sha256:") + 12
	return digest[:min(len(digest), digits)]
}
