package conversation

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

// Limits bound conversation branches. A zero field takes its default.
type Limits struct {
	// Owner caps the branches of one owner, 100; All those of all owners, 10,000.
	Owner, All int
	// Depth caps the forks from the declared branch to a branch, 8.
	Depth int
	// Bytes caps what is stored of one branch, as JSON and without Showed, 64 KiB.
	Bytes int
	// Shortest, Usual and Longest are the shortest, default and longest time for which a branch is kept: 1 s, 1 h
	// and 7 days.
	Shortest, Usual, Longest time.Duration
}

func (l Limits) withDefaults() Limits {
	return Limits{
		Owner: cmp.Or(l.Owner, 100), All: cmp.Or(l.All, 10_000), Depth: cmp.Or(l.Depth, 8), Bytes: cmp.Or(l.Bytes, 64<<10),
		Shortest: cmp.Or(l.Shortest, time.Second), Usual: cmp.Or(l.Usual, time.Hour), Longest: cmp.Or(l.Longest, 7*24*time.Hour),
	}
}

// Config configures a Store.
type Config struct {
	// Dir is the directory that keeps the branches; empty keeps them in memory only. It is made with mode 0700.
	Dir    string
	Limits Limits
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Log gets a line for each file that can't be used; nil discards it.
	Log *slog.Logger
}

// Store holds the conversation branches of a catalog. All methods are safe for concurrent use. A nil Store has
// no branches.
type Store struct {
	limits Limits
	now    func() time.Time
	log    *slog.Logger
	files  *files // nil in memory

	changing sync.Mutex // held during each change, while it is written to disk
	mu       sync.RWMutex
	by       map[string]Branch
	revision uint64
	changed  func()
}

// Open opens a store, and reads the branches in its directory. A file that can't be read as a whole is set aside
// with the ending .unusable: the branch in it, and those that were forked from it, no longer exist. The error
// says why the directory can't be used; ErrInUse is wrapped where another process uses it.
func Open(cfg Config) (*Store, error) {
	s := &Store{limits: cfg.Limits.withDefaults(), now: cfg.Now, log: cfg.Log, by: map[string]Branch{}}
	if s.now == nil {
		s.now = time.Now
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if cfg.Dir == "" {
		return s, nil
	}
	var err error
	if s.files, err = openFiles(cfg.Dir); err != nil {
		return nil, err
	}
	all, err := s.files.read(s.log)
	if err != nil {
		return nil, errors.Join(err, s.files.close())
	}
	for _, b := range all {
		s.revision++
		b.Revision = s.revision
		s.by[b.Name] = b
	}
	s.Sweep()
	return s, nil
}

// Close releases the directory. The store must not be used any more.
func (s *Store) Close() error {
	if s == nil || s.files == nil {
		return nil
	}
	return s.files.close()
}

// OnChange sets a function that is called after the terms of branches have changed, or branches have ended. Set it
// before the store is used.
func (s *Store) OnChange(f func()) { s.changed = f }

// Limits returns the limits.
func (s *Store) Limits() Limits { return s.limits }

// Chain returns the branch of that name and owner behind those that it was forked from, a fork of a declared
// branch first. ok is false if it, or one of them, does not exist, has expired or belongs to another. What is
// returned must not be modified.
func (s *Store) Chain(name string, of Owner) (chain []Branch, ok bool) {
	if s == nil || !IsName(name) {
		return nil, false
	}
	now := s.now()
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.chain(name, of, now)
}

// chain is Chain. s.mu must be held.
func (s *Store) chain(name string, of Owner, now time.Time) (chain []Branch, ok bool) {
	for {
		b, ok := s.by[name]
		if !ok || b.Owner != of || !now.Before(b.Expires) || len(chain) == s.limits.Depth {
			return nil, false
		}
		chain = append(chain, b)
		if name = b.From; name == b.Root {
			slices.Reverse(chain)
			return chain, true
		}
	}
}

// Revisions returns the Revisions of the chain of a branch of anyone's that exists.
func (s *Store) Revisions(name string) (revisions string, ok bool) {
	if s == nil {
		return "", false
	}
	now := s.now()
	s.mu.RLock()
	defer s.mu.RUnlock()
	chain, ok := s.chain(name, s.by[name].Owner, now)
	return Revisions(chain), ok
}

// All returns the branches that exist, sorted by name. What is returned must not be modified.
func (s *Store) All() (all []Branch) {
	if s == nil {
		return nil
	}
	now := s.now()
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, name := range slices.Sorted(maps.Keys(s.by)) {
		if _, ok := s.chain(name, s.by[name].Owner, now); ok {
			all = append(all, s.by[name])
		}
	}
	return all
}

// Owned returns the branches of an owner that exist, sorted by name. What is returned must not be modified.
func (s *Store) Owned(by Owner) (owned []Branch) {
	if s == nil {
		return nil
	}
	now := s.now()
	s.mu.RLock()
	defer s.mu.RUnlock()
	for name, b := range s.by {
		if b.Owner != by {
			continue
		}
		if _, ok := s.chain(name, by, now); ok {
			owned = append(owned, b)
		}
	}
	slices.SortFunc(owned, func(a, b Branch) int { return cmp.Compare(a.Name, b.Name) })
	return owned
}

// ErrLimit is wrapped by the error of a branch that a limit does not allow.
var ErrLimit = errors.New("there are too many conversation branches")

// ErrUnknown is the error for a branch that doesn't exist, has ended or belongs to another.
var ErrUnknown = errors.New("no such conversation branch")

// InvalidError is the error of terms that can't be those of a branch.
type InvalidError struct{ Err error }

func (e *InvalidError) Error() string { return e.Err.Error() }

func (e *InvalidError) Unwrap() error { return e.Err }

// Create stores a new branch with a new name and returns it. Of b it reads From, Owner, Labels and Terms; root is
// the declared branch if From is one, else empty. ttl is how long it is kept, 0 for the default; it ends no later
// than its parent. showed is called once, with the new name set, and returns Showed. The error is an
// *InvalidError, wraps ErrLimit or ErrUnknown (of From), or says why it could not be stored.
func (s *Store) Create(b Branch, root string, ttl time.Duration, showed func(Branch) []string) (Branch, error) {
	b = b.Clone()
	if err := errors.Join(CheckLabels(b.Labels), b.Check()); err != nil {
		return Branch{}, &InvalidError{err}
	}
	kept, err := s.kept(ttl)
	if err != nil {
		return Branch{}, err
	}
	s.Sweep()
	b.Name, b.Root, b.Depth = newName(), root, 1
	if err := s.admit(&b, kept); err != nil { // before the work
		return Branch{}, err
	}
	b.Showed = slices.Clone(showed(b.Clone()))
	s.changing.Lock()
	defer s.changing.Unlock()
	if err := s.admit(&b, kept); err != nil {
		return Branch{}, err
	}
	return s.put(b)
}

// admit sets what a new branch has of its parent, and returns an error if a limit does not allow the branch.
func (s *Store) admit(b *Branch, kept time.Duration) error {
	now := s.now().UTC().Truncate(time.Millisecond)
	b.Created, b.Expires = now, now.Add(kept)
	s.mu.RLock()
	defer s.mu.RUnlock()
	if b.From != b.Root {
		parents, ok := s.chain(b.From, b.Owner, s.now())
		if !ok {
			return ErrUnknown
		}
		parent := parents[len(parents)-1]
		b.Root, b.Depth, b.Expires = parent.Root, parent.Depth+1, earlier(b.Expires, parent.Expires)
	}
	owned := 0
	for _, other := range s.by {
		if other.Owner == b.Owner {
			owned++
		}
	}
	switch {
	case b.Depth > s.limits.Depth:
		return fmt.Errorf("%w on one another: %d forks of forks are the most; fork an earlier one", ErrLimit, s.limits.Depth)
	case owned >= s.limits.Owner:
		return fmt.Errorf("%w: you have %d, the most that one caller may have; delete one, or wait until one expires", ErrLimit, owned)
	case len(s.by) >= s.limits.All:
		return fmt.Errorf("%w: this catalogd has %d, the most that it keeps; try again later", ErrLimit, len(s.by))
	}
	return nil
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// kept returns the time for which a branch is kept.
func (s *Store) kept(ttl time.Duration) (time.Duration, error) {
	switch ttl = cmp.Or(ttl, s.limits.Usual); {
	case ttl < s.limits.Shortest || ttl > s.limits.Longest:
		return 0, &InvalidError{fmt.Errorf("ttl must be from %v to %v", s.limits.Shortest, s.limits.Longest)}
	}
	return ttl, nil
}

// put stores a branch under a new revision. s.changing must be held.
func (s *Store) put(b Branch) (Branch, error) {
	bare := b
	bare.Showed = nil
	text, err := json.Marshal(bare)
	if err != nil {
		return Branch{}, err
	}
	if len(text) > s.limits.Bytes {
		return Branch{}, &InvalidError{fmt.Errorf("the branch takes %d bytes, and may take %d; use patterns (get_*) and shorter labels", len(text), s.limits.Bytes)}
	}
	if s.files != nil {
		if err := s.files.write(b); err != nil {
			return Branch{}, fmt.Errorf("the branch can't be stored: %w", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revision++
	b.Revision = s.revision
	s.by[b.Name] = b
	return b, nil
}

// Change replaces the terms of an owner's branch by what change makes of a copy of it, and keeps it for a
// further ttl from now, but no longer than its parent; 0 changes nothing about that, and no ttl makes it end
// sooner. Of what change sets, only Terms and Showed count; it is called again if another change came between.
// Its error is returned; the others are those of Create.
func (s *Store) Change(name string, of Owner, ttl time.Duration, change func(*Branch) error) (Branch, error) {
	kept, err := s.kept(ttl)
	if err != nil {
		return Branch{}, err
	}
	for {
		chain, ok := s.Chain(name, of)
		if !ok {
			return Branch{}, ErrUnknown
		}
		next := chain[len(chain)-1]
		edited := next.Clone()
		if err := change(&edited); err != nil {
			return Branch{}, err
		}
		next.Terms, next.Showed = edited.Terms.Clone(), slices.Clone(edited.Showed)
		if err := next.Check(); err != nil {
			return Branch{}, &InvalidError{err}
		}
		if ttl != 0 {
			until := s.now().UTC().Truncate(time.Millisecond).Add(kept)
			if len(chain) > 1 {
				until = earlier(until, chain[len(chain)-2].Expires)
			}
			if until.After(next.Expires) {
				next.Expires = until
			}
		}
		stored, done, err := s.replace(next)
		if done && err == nil {
			s.notify()
		}
		if done {
			return stored, err
		}
	}
}

// replace stores the next state of a branch; done is false if the branch is not in the state before any more.
func (s *Store) replace(next Branch) (_ Branch, done bool, _ error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	s.mu.RLock()
	now, ok := s.by[next.Name]
	s.mu.RUnlock()
	if !ok || now.Revision != next.Revision {
		return Branch{}, false, nil
	}
	stored, err := s.put(next)
	return stored, true, err
}

// Delete ends an owner's branch, or with anyone also another's, and those that were forked from it. The error is
// ErrUnknown, or says that it has ended but may exist again after a restart.
func (s *Store) Delete(name string, of Owner, anyone bool) error {
	s.mu.RLock()
	b, ok := s.by[name]
	s.mu.RUnlock()
	if !ok || b.Owner != of && !anyone {
		return ErrUnknown
	}
	if _, ok := s.Chain(name, b.Owner); !ok {
		return ErrUnknown
	}
	return s.remove(s.below(name))
}

// Sweep removes the branches that have expired, and those that were forked from them.
func (s *Store) Sweep() {
	if s == nil {
		return
	}
	now := s.now()
	var ended []string
	s.mu.RLock()
	for name, b := range s.by {
		if _, ok := s.chain(name, b.Owner, now); !ok {
			ended = append(ended, name)
		}
	}
	s.mu.RUnlock()
	if err := s.remove(ended); err != nil {
		s.log.Error("expired conversation branches can't be removed", "error", err)
	}
}

// below returns the name of a branch and those of all that were forked from it.
func (s *Store) below(name string) []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	names := []string{name}
	for i := 0; i < len(names); i++ {
		for _, b := range s.by {
			if b.From == names[i] {
				names = append(names, b.Name)
			}
		}
	}
	return names
}

func (s *Store) remove(names []string) (err error) {
	if len(names) == 0 {
		return nil
	}
	s.changing.Lock()
	s.mu.Lock()
	for _, name := range names {
		delete(s.by, name)
	}
	s.mu.Unlock()
	if s.files != nil {
		err = s.files.remove(names)
	}
	s.changing.Unlock()
	s.notify()
	return err
}

func (s *Store) notify() {
	if s.changed != nil {
		s.changed()
	}
}
