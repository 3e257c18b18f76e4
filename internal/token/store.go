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

// look is the interval at which Run checks the file, and so the time that a revoked token may remain in
// effect.
const look = time.Second

// Store holds the tokens of a file that may change. All methods are safe for concurrent use.
type Store struct {
	path    string
	log     *slog.Logger
	opened  time.Time
	current atomic.Pointer[Set]
	failed  atomic.Pointer[Failure]

	mu     sync.Mutex // one reload at a time
	seen   fs.FileInfo
	looked time.Time
}

// Failure is why the current file is refused; the last good content remains in effect.
type Failure struct {
	// Since is when the file was refused.
	Since time.Time `json:"since"`
	// Error is why.
	Error string `json:"error"`
}

// Open reads the file at path; an invalid file is an error.
func Open(path string, log *slog.Logger) (*Store, error) {
	now := time.Now()
	s := &Store{path: path, log: log, opened: now}
	set, warning, info, err := load(path)
	if err != nil {
		return nil, err
	}
	s.current.Store(set)
	s.seen, s.looked = info, now
	s.warn(warning)
	return s, nil
}

// Path returns the path of the file.
func (s *Store) Path() string { return s.path }

// Find returns the valid token with that secret; nil if there is none.
func (s *Store) Find(secret string) *Token { return s.current.Load().Find(secret, time.Now()) }

// Get returns the valid token with that hash; nil if there is none.
func (s *Store) Get(h Hash) *Token { return s.current.Load().Get(h, time.Now()) }

// Named returns the valid token of that name; nil if there is none.
func (s *Store) Named(name string) *Token {
	now := time.Now()
	for _, t := range s.current.Load().all {
		if t.Name == name && !t.Expired(now) {
			return t
		}
	}
	return nil
}

// Len returns the number of valid tokens.
func (s *Store) Len() (n int) {
	now := time.Now()
	for _, t := range s.current.Load().all {
		if !t.Expired(now) {
			n++
		}
	}
	return n
}

// Failed returns why the current file is refused; nil if it is in effect.
func (s *Store) Failed() *Failure { return s.failed.Load() }

// Reload reads the file if it has changed, and reports whether the tokens have. A file that can't be read, or
// is invalid, changes only Failed.
func (s *Store) Reload() (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	info, err := os.Stat(s.path)
	// Two changes within one tick of the file system's clock look like one, so a recently modified file is
	// read again.
	if err == nil && s.seen != nil && same(s.seen, info) && s.looked.Sub(info.ModTime()) > 2*time.Second {
		return false
	}
	set, warning, info, err := load(s.path)
	s.seen, s.looked = info, now
	if err != nil {
		if old := s.failed.Load(); old == nil || old.Error != err.Error() {
			s.log.Error("the file of tokens is refused; the last good one stays in effect", "error", err)
			s.failed.Store(&Failure{Since: now, Error: err.Error()})
		}
		return false
	}
	recovered := s.failed.Swap(nil) != nil
	if !recovered && set.equal(s.current.Load()) {
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

// Run checks the file every second until ctx ends, and calls changed when the tokens have changed or one has
// expired.
func (s *Store) Run(ctx context.Context, changed func()) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	last := s.opened
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

// expired reports whether a token expired between two times.
func (s *Set) expired(after, by time.Time) bool {
	for _, t := range s.all {
		if t.Expired(by) && !t.Expired(after) {
			return true
		}
	}
	return false
}
