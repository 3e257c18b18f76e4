package intent

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// operation is one change that waits to be committed. Its function runs in the writer's goroutine, within a
// transaction; it first reads and decides, and writes only where it then returns nil. What it returns is an
// answer about the intent; what goes wrong with the database is kept in the batch and fails all operations of
// it.
type operation struct {
	name string
	run  func(*batch) error
	err  error
	done chan struct{}
	left atomic.Bool // taken by the writer, or abandoned by its caller: whoever was first
}

// writer holds the operations that wait. There is one goroutine for each store; what comes while it commits
// is committed together after that.
type writer struct {
	mu      sync.Mutex
	waiting []*operation
	closed  bool
	wake    chan struct{}
	ended   chan struct{}

	asked   atomic.Bool   // Changed was called since it last had something to say
	changed chan struct{} // what Changed returns
	version int64         // the data_version at which changed was last told
}

const (
	// maxBatch bounds a transaction, so that one that fails fails few.
	maxBatch = 256
	// pollEvery is how often another process's commits are looked for while somebody waits for them.
	pollEvery = 200 * time.Millisecond
)

func (s *Store) startWriter() {
	s.writer.wake, s.writer.ended = make(chan struct{}, 1), make(chan struct{})
	s.writer.changed = make(chan struct{}, 1)
	go s.writeLoop()
}

// stopWriter waits for what is queued; false where there is no writer or it was stopped before.
func (s *Store) stopWriter() bool {
	w := &s.writer
	w.mu.Lock()
	stopped := w.closed || w.wake == nil
	w.closed = true
	if !stopped {
		notify(w.wake)
	}
	w.mu.Unlock()
	if w.wake != nil {
		<-w.ended
	}
	return !stopped
}

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// do has the writer run an operation, and returns what came of it once that is committed. A caller that is
// cancelled before its operation was begun gets the context's error, and nothing was done; after that it
// waits.
func (s *Store) do(ctx context.Context, name string, run func(*batch) error) error {
	op := &operation{name: name, run: run, done: make(chan struct{})}
	w := &s.writer
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return s.failed(name, dbName, errClosed)
	}
	w.waiting = append(w.waiting, op)
	if len(w.waiting) == 1 {
		notify(w.wake)
	}
	w.mu.Unlock()
	select {
	case <-op.done:
	case <-ctx.Done():
		if op.left.CompareAndSwap(false, true) {
			return ctx.Err()
		}
		<-op.done
	}
	return op.err
}

func (s *Store) writeLoop() {
	w := &s.writer
	defer close(w.ended)
	var polled time.Time
	for {
		// Those that were just told may have more to say, which can go with what waits already.
		runtime.Gosched()
		var next <-chan time.Time
		if w.asked.Load() {
			if wait := pollEvery - time.Since(polled); wait > 0 {
				next = time.After(wait)
			} else {
				s.poll()
				polled = time.Now()
				continue
			}
		}
		w.mu.Lock()
		n := min(len(w.waiting), maxBatch)
		ops := w.waiting[:n:n]
		w.waiting = w.waiting[n:]
		if len(w.waiting) == 0 {
			w.waiting = nil
		}
		closed := w.closed
		w.mu.Unlock()
		switch {
		case n > 0:
			s.commit(ops)
		case closed:
			return
		default:
			select {
			case <-w.wake:
			case <-next:
			}
		}
	}
}

// batch is one transaction of the writer.
type batch struct {
	s     *Store
	now   int64
	delta [len(stateNumbers) + 1]int64 // what becomes of the counts, by a state's number
	fresh map[scope]int64              // the scopes that it has made
	err   error                        // the first thing that went wrong with the database; nothing is done after it
}

// commit runs operations in one transaction, and tells their callers.
func (s *Store) commit(ops []*operation) {
	taken := ops[:0]
	for _, op := range ops {
		if op.left.CompareAndSwap(false, true) {
			taken = append(taken, op)
		}
	}
	if len(taken) == 0 {
		return
	}
	err := s.transact(taken)
	for _, op := range taken {
		if err != nil {
			op.err = s.failed(op.name, dbName, err)
		}
		close(op.done)
	}
}

// transact commits operations. After an error nothing of them is done, as far as anybody can read (see
// Store).
func (s *Store) transact(ops []*operation) (err error) {
	if err := s.usable(); err != nil {
		return err
	}
	b := &batch{s: s}
	if b.exec(&s.stmts.begin); b.err != nil {
		return b.err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.rollBack())
		}
	}()
	var newest int64
	b.row(&s.stmts.newest, nil, &newest)
	s.clock.notBefore(newest)
	b.now = s.clock.now()
	for _, op := range ops {
		op.err = op.run(b)
		if b.err != nil {
			return b.err
		}
	}
	args := make([]any, 0, 1+len(b.delta))
	args = append(args, b.now)
	for _, n := range b.delta[1:] {
		args = append(args, n)
	}
	b.exec(&s.stmts.totals, args...)
	if b.err != nil {
		return b.err
	}
	if b.exec(&s.stmts.commit); b.err != nil {
		return errors.Join(b.err, s.rollBack(), s.overwrite())
	}
	s.scopes.keep(b.fresh)
	// A file that was removed or replaced before that has not what was written.
	return s.checkFiles()
}

// rollBack undoes the transaction that is open. A connection for which that fails is not used again.
//
// After an error of the disk the store goes on: frames of the log that could not be synced are no part of it
// for any process, and the next commit writes over them, so nothing hangs on a sync that the kernel may have
// forgotten.
func (s *Store) rollBack() error {
	_, err := s.stmts.rollback.Exec()
	if err == nil || strings.Contains(err.Error(), "no transaction is active") {
		return nil // SQLite has rolled back already (a full disk, an error of the disk), or the commit was done
	}
	s.lost.Store(&StoreError{Op: "roll back", Path: s.path(dbName), Err: err})
	return err
}

// overwrite commits the time alone over what a failed commit may have left in the log, so that nobody finds
// that there after this process has been killed. Where the disk can't sync this either, only a loss of power
// can bring it back.
func (s *Store) overwrite() error {
	b := &batch{s: s}
	b.exec(&s.stmts.begin)
	b.exec(&s.stmts.totals, s.clock.now(), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	b.exec(&s.stmts.commit)
	if b.err != nil {
		return s.rollBack() // the first error is the one to tell
	}
	return nil
}

// exec runs a statement and returns how many rows it changed. It does nothing after an error.
func (b *batch) exec(st **sql.Stmt, args ...any) (changed int64) {
	if b.err != nil {
		return 0
	}
	r, err := (*st).Exec(args...)
	if err == nil {
		changed, err = r.RowsAffected()
	}
	b.err = err
	return changed
}

// insert is exec for a statement that makes one row, and returns its id; 0 where it made none.
func (b *batch) insert(st **sql.Stmt, args ...any) int64 {
	if b.err != nil {
		return 0
	}
	r, err := (*st).Exec(args...)
	if err != nil {
		b.err = err
		return 0
	}
	n, err := r.RowsAffected()
	if err != nil || n == 0 {
		b.err = err
		return 0
	}
	id, err := r.LastInsertId()
	b.err = err
	return id
}

// row reads one row, and reports whether there was one.
func (b *batch) row(st **sql.Stmt, args []any, into ...any) bool {
	if b.err != nil {
		return false
	}
	err := (*st).QueryRow(args...).Scan(into...)
	if errors.Is(err, sql.ErrNoRows) {
		return false
	}
	b.err = err
	return err == nil
}

// moved counts an intent that goes from a state to another; 0 is none.
func (b *batch) moved(from, to int) {
	b.delta[from]--
	b.delta[to]++
}

// watched is a file of the store that must stay the one that was opened. SQLite does not notice a file that
// was removed, and would write on into it, while the next process makes another.
type watched struct {
	path string
	info os.FileInfo
}

// watchFiles notes which files they are.
func (s *Store) watchFiles() error {
	for _, name := range []string{dbName, dbName + "-wal", dbName + "-shm", ownersName + "/" + s.owner.name + lockSuffix} {
		info, err := os.Lstat(s.path(name))
		if err != nil {
			return s.failed("open", name, err)
		}
		s.files = append(s.files, watched{s.path(name), info})
	}
	return nil
}

// checkFiles is an error once one of the files is another; nothing is written or read after that, since what
// was just committed is in files that nobody else sees.
func (s *Store) checkFiles() error {
	for _, f := range s.files {
		info, err := os.Lstat(f.path)
		switch {
		case err == nil && os.SameFile(info, f.info):
			continue
		case err != nil && !errors.Is(err, fs.ErrNotExist):
		case f.path == s.owner.path:
			err = errLock // others take its intents for a dead owner's
		default:
			err = errLost
		}
		s.lost.Store(&StoreError{Op: "commit", Path: f.path, Err: err})
		return s.usable()
	}
	return nil
}

// usable says why the store is no longer used.
func (s *Store) usable() error {
	if err := s.lost.Load(); err != nil {
		return err
	}
	return nil
}

// Changed returns the channel that has an element once another process has committed something since it last
// had one. Calling it asks for one: commits are looked for every 200 ms until there is one, and not
// otherwise.
func (s *Store) Changed() <-chan struct{} {
	if s.writer.asked.CompareAndSwap(false, true) {
		notify(s.writer.wake)
	}
	return s.writer.changed
}

// poll tells Changed. The writer's connection does not count its own commits as changes (PRAGMA
// data_version).
func (s *Store) poll() {
	var version int64
	if err := s.stmts.version.QueryRow().Scan(&version); err != nil {
		s.cfg.Log.Warn("can't look for other processes' changes of intents", "err", s.failed("read", dbName, err))
		return
	}
	if version != s.writer.version {
		s.writer.version = version
		s.writer.asked.Store(false)
		notify(s.writer.changed)
	}
}
