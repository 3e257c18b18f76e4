package serve

import (
	"cmp"
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/state"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/registry"
)

// Each generation keeps what branches show to principals that the list policy tells apart, up to maxViews of them and
// maxViewTools tools in them, the most recently used; views that show the same count once. What is not kept is decided on
// again when it is asked for.
const (
	maxViews     = 4096
	maxViewTools = 1 << 20
)

// retryView is how long a view stands in which a decision has failed, with that tool hidden.
const retryView = 10 * time.Second

// views are a generation's call paths for principals whose claims (decision.Engine.ListClaims) are not the operator's.
// They are made when they are first asked for. The zero value is ready.
type views struct {
	mu     sync.Mutex
	by     map[viewKey]*list.Element // of *view
	recent list.List                 // the most recently used first
	shown  map[shownKey]*shownView
	tools  int
	// most and mostTools stand in for maxViews and maxViewTools where a test sets them.
	most, mostTools int

	deciding sync.Mutex // one view at a time, on all cores
	// before is what the previous generation decided, where it had the same policy.
	before inherited
}

type viewKey struct{ branch, claims string }

type view struct {
	key    viewKey
	made   chan struct{} // closed when the rest is there
	path   *invoke.Path
	failed time.Time // zero where every decision was answered
}

// shownKey names what is shown by content.
type shownKey struct{ branch, digest string }

type shownView struct {
	path *invoke.Path
	used int // by how many of views.by
}

// inherited are the names of the tools that each view had, and the questions that were then asked of each branch.
type inherited struct {
	names map[viewKey]map[string]bool
	asked map[state.Question]bool // never changed
}

// PathFor is the call path of a branch for a principal. Principals of whom the list policy reads the same share it.
func (g *Generation) PathFor(branch string, p decision.Principal) (*invoke.Path, bool) {
	operators, ok := g.paths[branch]
	if !ok || g.engine == nil {
		return operators, ok
	}
	claims := g.engine.ListClaims(p)
	if claims == "" || claims == g.claims {
		return operators, true
	}
	path := g.views.of(viewKey{branch, claims}, func(known knownAnswers) (*invoke.Path, bool) {
		return g.decideView(operators, p, known)
	})
	return path, path != nil
}

// decideView asks the list decision for one principal. complete is false where a decision failed.
func (g *Generation) decideView(operators *invoke.Path, p decision.Principal, known knownAnswers) (_ *invoke.Path, complete bool) {
	ctx := context.Background() // others wait for the answers, whoever asked first
	listing := patience{point: decision.List}
	branch := operators.View.Branch()
	q := listQuestions{engine: g.engine, branch: branch, principal: p, registry: g.registry, known: known, patience: &listing}
	begin := time.Now()
	visible, asked := q.decide(ctx)
	g.noteList(branch, p, visible, asked, begin)
	operators.Log.Debug("list decisions", "branch", branch.Name, "principal", p.Name, "asked", asked)
	if q.failed > 0 {
		operators.Log.Warn("list decisions failed; their tools are hidden from this principal for now", "branch", branch.Name, "principal", p.Name, "failed", q.failed)
	}
	path := *operators
	path.View = registry.NewView(g.registry, branch, func(e *registry.Entry) bool { return visible[e.Name()] })
	return &path, q.failed == 0
}

// knownAnswers is the answer to a question about a tool, as far as it is known.
type knownAnswers func(tool string, q state.Question) (allowed, ok bool)

// of is the view of that key; the first caller makes it and the others wait.
func (vs *views) of(key viewKey, decide func(knownAnswers) (path *invoke.Path, complete bool)) *invoke.Path {
	vs.mu.Lock()
	if e, ok := vs.by[key]; ok {
		v := e.Value.(*view)
		vs.recent.MoveToFront(e)
		vs.mu.Unlock()
		<-v.made
		if v.failed.IsZero() || time.Since(v.failed) < retryView {
			return v.path
		}
		vs.mu.Lock()
		vs.drop(e)
	}
	v := &view{key: key, made: make(chan struct{})}
	if vs.by == nil {
		vs.by, vs.shown = map[viewKey]*list.Element{}, map[shownKey]*shownView{}
	}
	if e, ok := vs.by[key]; ok { // another was faster
		vs.mu.Unlock()
		v = e.Value.(*view)
		<-v.made
		return v.path
	}
	e := vs.recent.PushFront(v)
	vs.by[key] = e
	vs.mu.Unlock()

	defer func() {
		if v.path == nil { // it panicked: the next one tries again
			vs.mu.Lock()
			vs.drop(e)
			vs.mu.Unlock()
		}
		close(v.made)
	}()
	path, complete := func() (*invoke.Path, bool) {
		vs.deciding.Lock()
		defer vs.deciding.Unlock()
		return decide(vs.before.answers(key))
	}()
	if !complete {
		v.failed = time.Now()
	}
	vs.mu.Lock()
	defer vs.mu.Unlock()
	v.path = vs.share(key.branch, path, vs.by[key] == e)
	for len(vs.by) > cmp.Or(vs.most, maxViews) || vs.tools > cmp.Or(vs.mostTools, maxViewTools) {
		last := vs.recent.Back()
		if last == e {
			break // too large by itself, and needed now
		}
		vs.drop(last)
	}
	return v.path
}

// share is the path of a view that shows the same, if there is one. kept says that the caller keeps it.
func (vs *views) share(branch string, path *invoke.Path, kept bool) *invoke.Path {
	at := shownKey{branch, path.View.Digest()}
	s := vs.shown[at]
	if s == nil {
		if !kept {
			return path
		}
		s = &shownView{path: path}
		vs.shown[at] = s
		vs.tools += path.View.Len()
	}
	if kept {
		s.used++
	}
	return s.path
}

// drop forgets a view. One that is still being made is forgotten as well, and is then its makers' alone.
func (vs *views) drop(e *list.Element) {
	v := e.Value.(*view)
	if vs.by[v.key] != e {
		return
	}
	vs.recent.Remove(e)
	delete(vs.by, v.key)
	if v.path == nil {
		return
	}
	at := shownKey{v.key.branch, v.path.View.Digest()}
	if s := vs.shown[at]; s != nil {
		if s.used--; s.used == 0 {
			vs.tools -= s.path.View.Len()
			delete(vs.shown, at)
		}
	}
}

// digests adds what is shown now.
func (vs *views) digests(shown map[string]bool) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	for at := range vs.shown {
		shown[at.digest] = true
	}
}

// answers are those of the previous generation's view of that key.
func (in inherited) answers(key viewKey) knownAnswers {
	names, ok := in.names[key]
	return func(tool string, q state.Question) (allowed, known bool) {
		return names[tool], ok && in.asked[q]
	}
}

// inherit takes over what the previous generation decided, which must have had the same policy.
func (vs *views) inherit(from *views, asked map[state.Question]bool) {
	from.mu.Lock()
	defer from.mu.Unlock()
	vs.before = inherited{names: map[viewKey]map[string]bool{}, asked: asked}
	for key, e := range from.by {
		v := e.Value.(*view)
		if v.path == nil || !v.failed.IsZero() {
			continue
		}
		names := make(map[string]bool, v.path.View.Len())
		for _, name := range v.path.View.Names() {
			names[name] = true
		}
		vs.before.names[key] = names
	}
}
