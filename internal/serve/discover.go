package serve

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/lock"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Quarantined is a tool of a server that the policy doesn't let be used.
type Quarantined struct {
	lock.Change
	// Code is the decision's: quarantined, denied, or why there is no answer.
	Code    decision.ReasonCode `json:"code"`
	Reasons []string            `json:"reasons,omitempty"`
	// Pos is where the tool is locked; nowhere for one that is not.
	Pos problem.Position `json:"pos,omitzero"`
}

// remote is a tool of a server by its name there.
type remote struct{ server, tool string }

// discover asks the discover decision about every tool that is locked, or offered and chosen, of each server that
// discovers its tools. What isn't allowed is hidden, under each name that it has in the catalog.
func (a *assembly) discover() (problems problem.List) {
	a.quarantined, a.g.questions = map[remote]string{}, map[remote]decision.DiscoverInput{}
	if a.engine == nil {
		return nil
	}
	for _, s := range a.g.made.build.Servers {
		if s.Discover == nil {
			continue
		}
		locked, _ := a.g.made.locked.Server(s.Name)
		locked.Name = s.Name
		declared := lock.DeclaredTools(a.g.made.declared, s.Name)
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
				Tool:   decision.DiscoverTool{Name: c.Tool, Catalog: lock.LocalName(s, c.Tool), Effect: string(was.Effect)},
				Change: string(c.Kind), From: c.From, Details: c.Details, Findings: c.Findings,
			}
			a.g.questions[remote{s.Name, c.Tool}] = in
			d := a.askDiscover(in)
			if d.Allow && isLocked {
				admitted[c.Tool] = c.Offered
				continue
			}
			if d.Allow {
				continue // nothing is served that is not locked
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
	if q.Kind == lock.Identical {
		why = "the server says that it is another, or the policy does not allow it"
	}
	return strings.Join(append([]string{why}, q.Reasons...), "; ")
}

// changes compares what a server offers with what is locked of it; while nothing is known, with itself.
func (a *assembly) changes(s registry.Server, locked lock.Server, chosen func(string) bool) ([]lock.Change, lock.Identity) {
	if offer, known := a.Live.offer(s.Digest); known {
		return lock.Compare(locked, offer, chosen), offer.Identity
	}
	self := lock.Offer{Identity: locked.Identity, Tools: map[string]lock.Definition{}}
	for _, t := range locked.Tools {
		self.Tools[t.Name] = t.Definition
	}
	return lock.Compare(locked, self, chosen), locked.Identity
}

// askDiscover asks the policy, or takes the answer to the same question from the previous generation.
func (a *assembly) askDiscover(in decision.DiscoverInput) decision.Decision {
	b, err := json.Marshal(in)
	if err != nil {
		panic(fmt.Sprintf("serve: a question is plain data: %v", err))
	}
	key := a.engine.Digest() + string(b)
	if a.prev != nil {
		if d, ok := a.prev.discovers[key]; ok {
			a.g.discovers[key] = d
			return d
		}
	}
	begin := time.Now()
	d := patiently(a.ctx, func() decision.Decision { return a.engine.Discover(a.ctx, in) })
	a.g.note(decision.Discover, in, d, begin)
	if d.Allow || d.Code == decision.Quarantined || answered(d) {
		a.g.discovers[key] = d
	}
	return d
}
