package catalogd

import (
	"context"
	"time"

	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Servers returns the declared upstream servers by name. The error of a catalog that has errors is a
// RefusedError.
func Servers(ctx context.Context, cfg Config) ([]registry.Server, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	builder, _, closeBuilder := cfg.builder()
	defer closeBuilder()
	snap, problems := cfg.source().Snapshot(ctx)
	if snap == nil || problems.HasErrors() {
		return nil, &RefusedError{Problems: problems.Sorted()}
	}
	build, more := builder.Compiler.Compile(ctx, snap)
	if build == nil || more.HasErrors() {
		return nil, &RefusedError{Problems: append(problems, more...).Sorted()}
	}
	return build.Servers, nil
}

// Survey connects to every trusted server that discovers its tools and asks what it offers, as `catalogd
// lock` and `catalogd drift` do. The result is nil where the catalog has errors. A server that can't be asked
// is no problem of the catalog: its Err says why.
func Survey(ctx context.Context, cfg Config) (*SurveyResult, problem.List, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, nil, err
	}
	builder, _, closeBuilder := cfg.builder()
	defer closeBuilder()
	snap, problems := cfg.source().Snapshot(ctx)
	if snap == nil || problems.HasErrors() {
		return nil, problems.Sorted(), nil
	}
	survey, more := builder.Survey(ctx, snap)
	return survey, append(problems, more...).Sorted(), nil
}

// ConnectDecisions returns every server and outward binding of the generation that is served, with its
// connect decision. Those whose command can't be run on this machine are Missing, and have none.
func (c *Catalog) ConnectDecisions() []ConnectDecision {
	g, release := c.daemon.Pin()
	defer release()
	return g.Outward()
}

// Secrets returns the secrets that the trusted servers and tools of the generation that is served get, and which of
// them this process can't read.
func (c *Catalog) Secrets() []Secret {
	g, release := c.daemon.Pin()
	defer release()
	return g.Secrets()
}

// ProbeServers asks every trusted HTTP server for its URL, without headers that could hold a secret, and returns
// whether it answers within timeout. A server that is not trusted is not contacted.
func (c *Catalog) ProbeServers(ctx context.Context, timeout time.Duration) []ServerProbe {
	g, release := c.daemon.Pin()
	defer release()
	return g.Probe(ctx, timeout)
}

// ProbeTools connects to each host that trusted http tools reach, once and within timeout, with a TLS handshake for
// https. It sends no request, and does not contact what is not trusted.
func (c *Catalog) ProbeTools(ctx context.Context, timeout time.Duration) []ToolProbe {
	g, release := c.daemon.Pin()
	defer release()
	return g.ProbeTools(ctx, timeout)
}

// ExplainConnect says which rules decide whether the server of that name, or the tool with an outward
// binding, may be connected to. It does not connect.
func (c *Catalog) ExplainConnect(ctx context.Context, name string) ([]ConnectExplanation, error) {
	g, release := c.daemon.Pin()
	defer release()
	return g.ExplainReach(ctx, name)
}

// Proposals returns trust entries for the servers and tools of that name, or for all where it is empty, that
// the policy does not trust: each grants the least that covers the declaration. trusted are those of that
// name that are trusted already. It does not connect.
func (c *Catalog) Proposals(ctx context.Context, name string) (
	proposals []Proposal, trusted []ConnectDecision, err error,
) {
	g, release := c.daemon.Pin()
	defer release()
	return g.Proposals(ctx, name)
}
