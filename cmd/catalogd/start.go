package main

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/internal/daemon"
	"github.com/catalogd/catalogd/problem"
)

// startReport is what serve says when it begins to serve.
type startReport struct {
	version, served, url string
	branches             []startedBranch
	status               daemon.Status
	// state is empty if none is kept. tokens is the file.
	state, tokens string
	// other is the address of another daemon that serves the same from the same state directory; empty if none does.
	other string
}

type startedBranch struct {
	Name  string `json:"name"`
	Tools int    `json:"tools"`
	URL   string `json:"url"`
}

func newStartReport(catalog *catalogd.Catalog, cfg catalogd.Config, url, other string) (startReport, error) {
	r := startReport{
		version: version(), served: cmp.Or(cfg.Build, cfg.Dir), url: url, status: catalog.Status(),
		state: cfg.State, tokens: cfg.Tokens, other: other,
	}
	for _, name := range catalog.Branches() {
		tools, err := catalog.Branch(name).Tools()
		if err != nil {
			return r, err
		}
		r.branches = append(r.branches, startedBranch{name, len(tools), url + "/branches/" + name + "/mcp"})
	}
	return r, nil
}

// log writes the report as one event.
func (r startReport) log(log *slog.Logger) {
	g := r.status.Generation
	log.Info("serving", "version", r.version, "dir", r.served, "url", r.url, "branches", r.branches,
		"generation", g.ID, "adopted", g.Adopted, "policy", g.Policy, "healthy", r.status.Healthy,
		"tools", g.Tools, "hidden", g.Hidden, "hidden_tools", g.HiddenTools,
		"unseen", r.status.Generation.Unseen, "untrusted", r.untrusted(), "missing_secrets", r.status.MissingSecrets,
		"warnings", warnings(r.status.Warnings), "state", r.state, "other_daemon", r.other,
		"tokens", r.tokens, "degraded", r.degraded())
}

// degraded says why not everything is served as the files say; empty if it is.
func (r startReport) degraded() string {
	if r.status.Healthy {
		return ""
	}
	why := r.status.Degraded()
	failed := r.status.Failed
	if failed == nil {
		return why
	}
	why += ", and what was adopted before this start is served in their place"
	for _, p := range failed.Problems {
		if p.Severity == problem.Error {
			return why + ": " + p.String()
		}
	}
	return why
}

// print writes the report for people, in at most ten lines: the branches get what room the rest leaves.
func (r startReport) print(w io.Writer) {
	const most = 10
	first := fmt.Sprintf("catalogd %s serves %s, policy %s, %s: %s/status",
		r.version, r.served, short(r.status.Generation.Policy), r.status.Generation.Adopted, r.url)
	rest := r.findings()
	lines := append([]string{first}, r.branchLines(min(3, most-1-len(rest)))...)
	for _, line := range append(lines, rest...) {
		fmt.Fprintln(w, problem.Printable(line))
	}
}

// branchLines lists the branches in at most so many lines, two or more.
func (r startReport) branchLines(most int) (lines []string) {
	shown := r.branches
	if len(shown) > most {
		shown = shown[:most-1]
	}
	width := 0
	for _, b := range shown {
		width = max(width, len(count(b.Tools, "tool")))
	}
	for _, b := range shown {
		lines = append(lines, fmt.Sprintf("  %-*s  %s", width, count(b.Tools, "tool"), b.URL))
	}
	if more := len(r.branches) - len(shown); more > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more branches: %s/branches", more, r.url))
	}
	return lines
}

// findings are the lines below the branches.
func (r startReport) findings() (lines []string) {
	if !r.status.Healthy {
		lines = append(lines, "DEGRADED: "+r.degraded()+"; more: catalogd status --server "+r.url)
	}
	lines = append(lines, hiddenLine(r.status.Generation), untrustedLine(r.untrusted()), secretsLine(r.status.MissingSecrets))
	if found := warnings(r.status.Warnings); len(found) > 0 {
		lines = append(lines, "warnings: "+strings.Join(found, ", ")+"; more: catalogd check")
	}
	if in := r.status.Intents; in != nil {
		lines = append(lines, intentsLine(*in))
	}
	admitted, state := "no tokens: everyone on this machine is the operator", "state: "+r.state
	if t := r.status.Tokens; t != nil {
		admitted = fmt.Sprintf("tokens: %d good, of %s", t.Good, r.tokens)
	}
	if r.other != "" {
		state += ", shared with another daemon of the same catalog, at " + r.other
	}
	if r.state == "" {
		state = "no state is kept: a restart forgets what was adopted"
	}
	lines = append(lines, admitted+"; "+state)
	return slices.DeleteFunc(lines, func(line string) bool { return line == "" })
}

// untrusted returns the names of the servers that the policy does not let be reached. It is not asked about those
// whose command is missing, of which a warning says so.
func (r startReport) untrusted() []string {
	names := []string{}
	for _, s := range r.status.Servers {
		if !s.Trusted && s.State != "missing" {
			names = append(names, s.Name)
		}
	}
	return names
}

// untrustedLine names a few servers; empty if there are none.
func untrustedLine(servers []string) string {
	const most = 3
	if len(servers) == 0 {
		return ""
	}
	line := "not trusted: " + strings.Join(servers[:min(most, len(servers))], ", ")
	if more := len(servers) - most; more > 0 {
		line += fmt.Sprintf(" and %s more", count(more, "server"))
	}
	return line + "; more: catalogd trust"
}

// secretsLine names a few secrets that can't be read, and who uses them; empty if there are none.
func secretsLine(missing []catalogd.Secret) string {
	const most = 3
	if len(missing) == 0 {
		return ""
	}
	var names []string
	for _, s := range missing[:min(most, len(missing))] {
		if more := len(s.Users) - most; more > 0 {
			last := s.Users[most-1]
			last.Name += fmt.Sprintf(" and %d more", more)
			s.Users = append(slices.Clone(s.Users[:most-1]), last)
		}
		names = append(names, s.String())
	}
	line := "missing secrets: " + strings.Join(names, ", ")
	if more := len(missing) - most; more > 0 {
		line += fmt.Sprintf(" and %d more", more)
	}
	return line + "; more: catalogd doctor"
}

// warnings counts warnings by their code, the most frequent first, and says what the first of each is about.
func warnings(l problem.List) (counted []string) {
	counts, about := map[problem.Code]int{}, map[problem.Code]string{}
	var codes []problem.Code
	for _, p := range l {
		if counts[p.Code]++; counts[p.Code] == 1 {
			codes = append(codes, p.Code)
			about[p.Code] = cmp.Or(strings.Join(firstTwo(p.Path), "."), p.Position.String())
		}
	}
	slices.SortStableFunc(codes, func(a, b problem.Code) int { return cmp.Compare(counts[b], counts[a]) })
	for _, code := range codes {
		first := ""
		if counts[code] > 1 {
			first = "first "
		}
		counted = append(counted, fmt.Sprintf("%d %s (%s%s)", counts[code], code, first, about[code]))
	}
	return counted
}

// firstTwo returns the first two parts of a path, such as servers and the name of one.
func firstTwo(path string) []string {
	parts := strings.Split(path, ".")
	return parts[:min(2, len(parts))]
}
