package generation

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/egress"
	"github.com/catalogd/catalogd/internal/upstream"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// connectKey is everything that a connect decision depends on.
type connectKey struct {
	policy   string
	subject  decision.Subject
	target   string // its digest
	observed string // as JSON
}

type connectAnswer struct {
	trust    trust.Trust
	decision decision.Decision
}

// trustServers requests the connect decision for every server and opens the set of the trusted ones. branches
// are those whose connections are separate if a server declares so.
func (a *assembly) trustServers(servers []registry.Server, branches []registry.Branch) (problems problem.List) {
	a.untrusted, a.missing = map[string]string{}, map[string]string{}
	var trusted []upstream.Upstream
	names := make([]string, len(branches))
	for i, b := range branches {
		names[i] = b.Name
	}
	for _, s := range servers {
		target, more := upstream.Target(s, a.Root)
		problems = append(problems, more...)
		if s.Stdio != nil {
			a.command(s.Stdio.Command)
		}
		if more.Has(problem.MissingCommand) && !more.HasErrors() {
			_, a.missing[s.Name], _ = strings.Cut(more[0].Message, ": ") // what egress.Unusable says
			a.lacks(decision.Subject{Kind: "server", Name: s.Name, Pos: s.Pos}, target, a.missing[s.Name])
			continue
		}
		if more.HasErrors() || a.engine == nil {
			a.untrusted[s.Name] = "its declaration is not valid"
			continue
		}
		asked := a.question(decision.Subject{Kind: "server", Name: s.Name, Pos: s.Pos}, target)
		answer := a.connect(asked, target.Digest())
		if answer.decision.Code == decision.PolicyTimeout {
			a.untrusted[s.Name] = notDecided
			continue
		}
		if why := unreachable(answer, func() error { return egress.Check(answer.trust, target, asked.Observed.InTree) }); why != "" {
			a.untrusted[s.Name] = why
			problems.Warnf(problem.UntrustedServer, s.Pos, "servers."+s.Name,
				"server %q is not trusted, so its tools are hidden: %s; %s", s.Name, why, proposeCommand(s.Name))
			continue
		}
		a.g.servers[s.Name] = answer.trust
		trusted = append(trusted, upstream.Upstream{
			Server: s, Trust: answer.trust, Branches: names, Redirect: redirect(a.g.engine, asked, answer.trust),
		})
	}
	a.g.upstream = a.Pool.Open(a.Root, trusted)
	return problems
}

// notTrusted is part of the reason for hiding what may not be reached.
const notTrusted = "not trusted: "

// notDecided is the reason for hiding what the policy did not decide on in time.
const notDecided = "whether it may be reached is not decided yet"

// unreachable returns the reason why a target may not be reached: the decision denied, or its grant is
// insufficient. Empty means that it may.
func unreachable(answer connectAnswer, enough func() error) string {
	if !answer.decision.Allow {
		return refusal(answer.decision)
	}
	if err := enough(); err != nil {
		return err.Error()
	}
	return ""
}

// refusal returns the reasons of a denied decision as text, or else its code.
func refusal(d decision.Decision) string {
	if len(d.Reasons) == 0 {
		return string(d.Code)
	}
	return strings.Join(d.Reasons, "; ")
}

// question returns the input of the connect decision for a target.
func (a *assembly) question(subject decision.Subject, target trust.Target) decision.ConnectInput {
	return decision.ConnectInput{Subject: subject, Target: target, Observed: a.observer.Observe(target, a.Root)}
}

// connect requests the connect decision, or reuses the previous generation's answer to the same question
// under the same policy, and keeps the answer for `catalogd trust`. digest is the target's.
func (a *assembly) connect(in decision.ConnectInput, digest string) connectAnswer {
	observed, err := json.Marshal(in.Observed)
	if err != nil {
		panic(fmt.Sprintf("generation: what was observed is plain data: %v", err))
	}
	subject := in.Subject
	key := connectKey{a.engine.Digest(), subject, digest, string(observed)}
	var answer connectAnswer
	known := false
	if a.prev != nil {
		answer, known = a.prev.connects[key]
	}
	if !known {
		begin := time.Now()
		question := Undecided{Point: decision.Connect, Kind: subject.Kind, Name: subject.Name, Pos: subject.Pos}
		d, asked := a.undecided.ask(a.ctx, question, func() decision.Decision {
			answer.trust, answer.decision = a.engine.Connect(a.ctx, in)
			return answer.decision
		})
		if !asked { // too many timeouts; the build is refused
			return connectAnswer{decision: d}
		}
		a.g.logDecision(decision.Connect, in, answer.decision, begin)
		place := ""
		if answer.decision.Allow {
			place = a.engine.TrustPosition(answer.trust.Name()).String()
		}
		level := slog.LevelInfo
		if a.decidedBefore(subject, in.Target, answer.decision) {
			level = slog.LevelDebug // a new policy has confirmed it
		}
		a.Log.Log(a.ctx, level, "connect decision", "generation", a.g.ID, "kind", subject.Kind, "name", subject.Name, "allow", answer.decision.Allow,
			"trust", answer.decision.Trust, "written", place, "code", answer.decision.Code, "reasons", answer.decision.Reasons, "declared", subject.Pos.String())
	}
	a.g.failures.note(a.ctx, a.Log, answer.decision, fmt.Sprintf("%s %q", subject.Kind, subject.Name))
	a.mu.Lock()
	defer a.mu.Unlock()
	if answered(answer.decision) {
		a.g.connects[key] = answer
	}
	way := Reach{Kind: subject.Kind, Name: subject.Name, Target: in.Target, Observed: in.Observed, Decision: answer.decision, Pos: subject.Pos, asked: in}
	if answer.decision.Allow {
		way.granted = answer.trust
		way.Trust, way.Pinned = answer.trust.Name(), answer.trust.SHA256() != ""
		way.Written = a.engine.TrustPosition(way.Trust)
		way.Variables = egress.Variables(answer.trust, in.Target)
	}
	a.g.reaches = append(a.g.reaches, way)
	return answer
}

// decidedBefore reports whether the previous generation has the same decision on the same target.
func (a *assembly) decidedBefore(subject decision.Subject, target trust.Target, d decision.Decision) bool {
	if a.prev == nil {
		return false
	}
	i, found := slices.BinarySearchFunc(a.prev.reaches, subject, func(r Reach, s decision.Subject) int {
		return cmp.Or(cmp.Compare(r.Kind, s.Kind), cmp.Compare(r.Name, s.Name))
	})
	if !found {
		return false
	}
	was := a.prev.reaches[i]
	return was.Decision.Allow == d.Allow && was.Decision.Trust == d.Trust && was.Decision.Code == d.Code &&
		slices.Equal(was.Decision.Reasons, d.Reasons) && was.Target.Digest() == target.Digest()
}

// redirect returns a function that decides on a redirect like on any other target, except that the same trust
// entry must cover it: that entry determines the addresses that may be dialled and the headers that are sent.
func redirect(engine *decision.Engine, asked decision.ConnectInput, granted trust.Trust) func(context.Context, trust.Target) error {
	return func(ctx context.Context, to trust.Target) error {
		in := asked // the observed facts still apply, because the host is the same
		in.Target = to
		again, d := engine.Connect(ctx, in)
		switch {
		case !d.Allow:
			return errors.New(refusal(d))
		case again.Name() != granted.Name():
			return fmt.Errorf("trust entry %q covers it, and what is redirected is reached through %q", again.Name(), granted.Name())
		}
		return nil
	}
}
