package generation

import (
	"cmp"
	"container/list"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/buildcache"
	"github.com/catalogd/catalogd/invoke"
)

// Each generation caches what branches show to principals that the list policy distinguishes: up to maxViews
// views with maxViewTools tools in them, the most recently used; equal views count once. Evicted views are
// decided anew on request.
const (
	maxViews     = 4096
	maxViewTools = 1 << 20
)

// retryView is how long a view with a failed decision, whose tool is hidden, is cached before it is decided
// anew.
const retryView = 5 * time.Second

// views caches the call paths for principals whose claims (decision.Engine.ListClaims) differ from the
// operator's. A view is made on first request. The zero value is ready to use.
type views struct {
	mu     sync.Mutex
	by     map[viewKey]*list.Element // of *view
	recent list.List                 // most recently used first
	shown  map[shownKey]*shownView
	tools  int
	// most and mostTools replace maxViews and maxViewTools in tests.
	most, mostTools int

	deciding sync.Mutex // decides one view at a time, each on all cores
	// changed is called when a retry has changed a view; may be nil.
	changed func()
	// before holds the decisions of the previous generation, if it had the same policy.
	before inherited
}

// viewKey is what a view depends on. fork is empty for a declared branch, and else names the state of a
// conversation branch and of all that it was forked from.
type viewKey struct{ branch, claims, fork string }

type view struct {
	key    viewKey
	made   chan struct{} // closed when path and failed are set
	path   *invoke.Path
	failed time.Time // zero if every decision was answered
}

// shownKey identifies the content of a view.
type shownKey struct{ branch, fork, digest string }

type shownView struct {
	path *invoke.Path
	used int // number of entries of views.by that share it
}

// inherited holds the visible tools of each view, and the questions that were then asked for the branches.
type inherited struct {
	names map[viewKey]map[string]bool
	asked map[buildcache.Question]bool // never modified
}

// SameForAll reports whether no list or call decision reads anything of the principal, so that every principal
// is shown the same.
func (g *Generation) SameForAll() bool { return g.engine != nil && g.claims == "" }

// PathFor returns the call path of a branch, declared or a conversation branch of the principal's, for a
// principal. Principals that the list policy doesn't distinguish share that of a declared one.
func (g *Generation) PathFor(branch string, p decision.Principal) (*invoke.Path, bool) {
	operators, ok := g.paths[branch]
	if !ok {
		return g.conversationPath(branch, p)
	}
	if g.engine == nil {
		return operators, ok
	}
	claims := g.engine.ListClaims(p)
	if claims == "" || claims == g.claims {
		return operators, true
	}
	path := g.views.of(viewKey{branch: branch, claims: claims}, func(known knownAnswers) (*invoke.Path, bool) {
		return g.decideView(operators, p, known)
	})
	return path, path != nil
}

// decideView requests the list decisions for one principal. complete is false if a decision failed.
func (g *Generation) decideView(operators *invoke.Path, p decision.Principal, known knownAnswers) (_ *invoke.Path, complete bool) {
	ctx := context.Background() // other callers wait for the result, so no request's context may cancel it
	var listing undecided
	branch := operators.View.Branch()
	q := listQuestions{
		engine: g.engine, branch: branch, principal: p, entries: g.registry.Entries(), known: known, undecided: &listing, note: g.noting(ctx, branch.Name),
	}
	begin := time.Now()
	visible, asked := q.decide(ctx)
	g.logList(branch, p, visible, asked, begin)
	operators.Log.Debug("list decisions", "branch", branch.Name, "principal", p.Name, "asked", asked)
	if q.failed > 0 {
		operators.Log.Warn("list decisions failed; their tools are hidden from this principal for now", "branch", branch.Name, "principal", p.Name, "failed", q.failed)
	}
	if listing.any() {
		time.AfterFunc(retryView+time.Second, func() { g.retryView(branch.Name, p) })
	}
	path := *operators
	view, decided := g.view(ctx, g.engine, branch, p, visible)
	path.View = view
	return &path, q.failed == 0 && decided
}

// retryView decides anew, in the background, what the policy did not decide in time for a principal.
func (g *Generation) retryView(branch string, p decision.Principal) {
	if !g.Pin() {
		return // another generation serves
	}
	defer g.Unpin()
	before, kept := g.views.shows(viewKey{branch: branch, claims: g.engine.ListClaims(p)})
	if !kept {
		return // the next request decides anew
	}
	if path, ok := g.PathFor(branch, p); ok && path.View.Digest() != before && g.views.changed != nil {
		g.views.changed()
	}
}

// shows returns the digest of a view that is cached and made.
func (vs *views) shows(key viewKey) (digest string, ok bool) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	if e := vs.by[key]; e != nil && e.Value.(*view).path != nil {
		return e.Value.(*view).path.View.Digest(), true
	}
	return "", false
}

// knownAnswers returns the answer to a question about a tool, if it is known.
type knownAnswers func(tool string, q buildcache.Question) (allowed, ok bool)

// of returns the call path for a key; the first caller makes it and the others wait.
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
	if e, ok := vs.by[key]; ok { // another caller was faster
		vs.mu.Unlock()
		v = e.Value.(*view)
		<-v.made
		return v.path
	}
	e := vs.recent.PushFront(v)
	vs.by[key] = e
	vs.mu.Unlock()

	defer func() {
		if v.path == nil { // decide panicked; the next caller tries again
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
	v.path = vs.share(key, path, vs.by[key] == e)
	for len(vs.by) > cmp.Or(vs.most, maxViews) || vs.tools > cmp.Or(vs.mostTools, maxViewTools) {
		last := vs.recent.Back()
		if last == e {
			break // too large by itself, but needed now
		}
		vs.drop(last)
	}
	return v.path
}

// share returns the path of an equal view, if there is one. kept says that the caller caches it.
func (vs *views) share(key viewKey, path *invoke.Path, kept bool) *invoke.Path {
	at := shownKey{key.branch, key.fork, path.View.Digest()}
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

// drop evicts a view. One that is still being made is evicted too, and remains valid for the callers that
// wait for it.
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
	at := shownKey{v.key.branch, v.key.fork, v.path.View.Digest()}
	if s := vs.shown[at]; s != nil {
		if s.used--; s.used == 0 {
			vs.tools -= s.path.View.Len()
			delete(vs.shown, at)
		}
	}
}

// forget drops the views of conversation branches of which outdated is true.
func (vs *views) forget(outdated func(viewKey) bool) {
	var forks []viewKey
	vs.mu.Lock()
	for key := range vs.by {
		if key.fork != "" {
			forks = append(forks, key)
		}
	}
	vs.mu.Unlock()
	forks = slices.DeleteFunc(forks, func(key viewKey) bool { return !outdated(key) })
	vs.mu.Lock()
	defer vs.mu.Unlock()
	for _, key := range forks {
		if e := vs.by[key]; e != nil {
			vs.drop(e)
		}
	}
}

// digests adds the digests of the cached views to shown.
func (vs *views) digests(shown map[string]bool) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	for at := range vs.shown {
		shown[at.digest] = true
	}
}

// answers returns the answers of the previous generation's view of that key.
func (in inherited) answers(key viewKey) knownAnswers {
	names, ok := in.names[key]
	return func(tool string, q buildcache.Question) (allowed, known bool) {
		return names[tool], ok && in.asked[q]
	}
}

// inherit reuses the decisions of the previous generation, which must have had the same policy.
func (vs *views) inherit(from *views, asked map[buildcache.Question]bool) {
	from.mu.Lock()
	defer from.mu.Unlock()
	vs.before = inherited{names: map[viewKey]map[string]bool{}, asked: asked}
	for key, e := range from.by {
		v := e.Value.(*view)
		if v.path == nil || !v.failed.IsZero() || key.fork != "" {
			continue
		}
		names := make(map[string]bool, v.path.View.Len())
		for _, name := range v.path.View.Catalog() {
			names[name] = true
		}
		vs.before.names[key] = names
	}
}
