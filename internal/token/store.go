package token

import (
	"context"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// look is how often Run looks at the file: the longest that a revoked token goes on.
const look = time.Second

// Store is the tokens of a file that may change. All methods are safe for concurrent use.
type Store struct {
	path    string
	log     *slog.Logger
	current atomic.Pointer[Set]
	failed  atomic.Pointer[Failure]

	mu     sync.Mutex // one look at a time
	seen   fs.FileInfo
	looked time.Time
}

// Failure is why the file as it is now doesn't count: the last good content does.
type Failure struct {
	Since time.Time `json:"since"`
	Error string    `json:"error"`
}

// Open reads the file at path, which must be good.
func Open(path string, log *slog.Logger) (*Store, error) {
	s := &Store{path: path, log: log}
	now := time.Now()
	set, warning, info, err := load(path)
	if err != nil {
		return nil, err
	}
	s.current.Store(set)
	s.seen, s.looked = info, now
	s.warn(warning)
	return s, nil
}

// Path is the file's.
func (s *Store) Path() string { return s.path }

// Find is the token of a secret that is good now; nil for every other.
func (s *Store) Find(secret string) *Token { return s.current.Load().Find(secret, time.Now()) }

// Get is the token with a hash that is good now; nil for every other.
func (s *Store) Get(h Hash) *Token { return s.current.Load().Get(h, time.Now()) }

// Len counts the tokens that are good now.
func (s *Store) Len() (n int) {
	now := time.Now()
	for _, t := range s.current.Load().all {
		if !t.Expired(now) {
			n++
		}
	}
	return n
}

// Failed is nil while the file as it is now is what counts.
func (s *Store) Failed() *Failure { return s.failed.Load() }

// Reload looks at the file, and reports whether the tokens are others than before. A file that can't be read, or has
// anything wrong with it, changes nothing but Failed.
func (s *Store) Reload() (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	info, err := os.Stat(s.path)
	// Two changes in one tick of the file system's clock look like one, so a file that was young is looked at again.
	if err == nil && s.seen != nil && same(s.seen, info) && s.looked.Sub(info.ModTime()) > 2*time.Second {
		return false
	}
	set, warning, info, err := load(s.path)
	s.seen, s.looked = info, now
	if err != nil {
		if old := s.failed.Load(); old == nil || old.Error != err.Error() {
			s.log.Error("the file of tokens is refused; the last good one goes on", "error", err)
			s.failed.Store(&Failure{Since: now, Error: err.Error()})
		}
		return false
	}
	mended := s.failed.Swap(nil) != nil
	if !mended && set.equal(s.current.Load()) {
		return false
	}
	s.current.Store(set)
	s.log.Info("tokens read", "file", s.path, "tokens", len(set.all))
	s.warn(warning)
	return true
}

func (s *Store) warn(warning string) {
	if warning != "" {
		s.log.Warn(warning)
	}
}

func same(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size() && a.Mode() == b.Mode()
}

// Run looks at the file every second until ctx ends, and calls changed after the tokens have changed or one has expired.
func (s *Store) Run(ctx context.Context, changed func()) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		if s.Reload() || s.current.Load().expired(last, now) {
			changed()
		}
		last = now
	}
}

// expired reports whether a token has expired after one time and by another.
func (s *Set) expired(after, by time.Time) bool {
	for _, t := range s.all {
		if t.Expired(by) && !t.Expired(after) {
			return true
		}
	}
	return false
}
