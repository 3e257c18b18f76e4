package generation

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/lockfile"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Quarantined is a tool of a server that the policy doesn't allow.
type Quarantined struct {
	lockfile.Change
	// Code is the decision's: quarantined, denied, or that of a failure.
	Code decision.ReasonCode `json:"code"`
	// Reasons are those of the decision.
	Reasons []string `json:"reasons,omitempty"`
	// Pos is where the tool is locked; zero if it is not.
	Pos problem.Position `json:"pos,omitzero"`
}

// remote is a tool of a server, by its name on the server.
type remote struct{ server, tool string }

// discover requests the discover decision about every tool that is locked, or offered and chosen, of each
// server that discovers its tools. A tool that isn't allowed is hidden, under each name that it has in the
// catalog.
func (a *assembly) discover() (problems problem.List) {
	a.quarantined, a.g.questions = map[remote]string{}, map[remote]decision.DiscoverInput{}
	if a.engine == nil {
		return nil
	}
	for _, s := range a.g.inputs.build.Servers {
		if s.Discover == nil {
			continue
		}
		locked, _ := a.g.inputs.locked.Server(s.Name)
		locked.Name = s.Name
		declared := lockfile.DeclaredTools(a.g.inputs.declared, s.Name)
		changes, offered := a.changes(s, locked, func(tool string) bool { return s.Discover.Chooses(tool) || slices.Contains(declared, tool) })
		admitted := map[string]string{}
		a.g.admitted[s.Digest] = admitted
		for _, c := range changes {
			was, isLocked := locked.Tool(c.Tool)
			in := decision.DiscoverInput{
				Server: decision.DiscoverServer{
					Name: s.Name, Trust: a.g.servers[s.Name].Name(),
					Locked: decision.DiscoverIdentity(locked.Identity), Offered: decision.DiscoverIdentity(offered),
				},
				Tool:   decision.DiscoverTool{Name: c.Tool, Catalog: lockfile.LocalName(s, c.Tool), Effect: string(was.Effect)},
				Change: string(c.Kind), From: c.From, Details: c.Details, Findings: c.Findings,
			}
			a.g.questions[remote{s.Name, c.Tool}] = in
			d := a.askDiscover(in, Undecided{
				Point: decision.Discover, Kind: "tool", Name: in.Tool.Catalog, Pos: was.Pos,
			})
			if d.Allow && isLocked {
				admitted[c.Tool] = c.Offered
				continue
			}
			if d.Allow {
				continue // only locked tools are served
			}
			q := Quarantined{Change: c, Code: d.Code, Reasons: d.Reasons, Pos: was.Pos}
			a.g.quarantined = append(a.g.quarantined, q)
			a.quarantined[remote{s.Name, c.Tool}] = q.why()
			if isLocked {
				problems.Warnf(problem.Quarantined, was.Pos, "servers."+s.Name+".tools."+c.Tool,
					"the tool is hidden: %s; see `catalogd drift`", q.why())
			}
		}
	}
	return problems
}

func (q Quarantined) why() string {
	why := q.Summary()
	if q.Kind == lockfile.Identical {
		why = "the server says that it is another, or the policy does not allow it"
	}
	return strings.Join(append([]string{why}, q.Reasons...), "; ")
}

// changes compares what a server offers with what is locked. If the offer is unknown, it compares the lock
// with itself.
func (a *assembly) changes(s registry.Server, locked lockfile.Server, chosen func(string) bool) ([]lockfile.Change, lockfile.Identity) {
	if offer, known := a.Live.offer(s.Digest); known {
		return lockfile.Compare(locked, offer, chosen), offer.Identity
	}
	self := lockfile.Offer{Identity: locked.Identity, Tools: map[string]lockfile.Definition{}}
	for _, t := range locked.Tools {
		self.Tools[t.Name] = t.Definition
	}
	return lockfile.Compare(locked, self, chosen), locked.Identity
}

// askDiscover requests the discover decision, or reuses the previous generation's answer to the same
// question.
func (a *assembly) askDiscover(in decision.DiscoverInput, subject Undecided) decision.Decision {
	b, err := json.Marshal(in)
	if err != nil {
		panic(fmt.Sprintf("generation: a question is plain data: %v", err))
	}
	key := a.engine.Digest() + string(b)
	if a.prev != nil {
		if d, ok := a.prev.discovers[key]; ok {
			a.g.discovers[key] = d
			return d
		}
	}
	begin := time.Now()
	d, _ := a.undecided.ask(a.ctx, subject, func() decision.Decision { return a.engine.Discover(a.ctx, in) })
	a.g.logDecision(decision.Discover, in, d, begin)
	a.g.failures.note(a.ctx, a.Log, d, fmt.Sprintf("tool %q of server %q", in.Tool.Name, in.Server.Name))
	if d.Allow || d.Code == decision.Quarantined || answered(d) {
		a.g.discovers[key] = d
	}
	return d
}
