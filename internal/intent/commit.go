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
// transaction that it may share with other operations. If it returns an error, which is about the intent, it
// must not have written anything. Errors of the database go to batch.err and fail all operations of the
// batch.
type operation struct {
	name string
	run  func(*batch) error
	err  error
	done chan struct{}
	left atomic.Bool // set by the writer when it takes the operation, or by the caller when it gives up
}

// writer is the queue of operations of a store. One goroutine commits them: those that arrive during a commit
// form the next batch.
type writer struct {
	mu      sync.Mutex
	waiting []*operation
	closed  bool
	wake    chan struct{}
	ended   chan struct{}

	asked   atomic.Bool   // Changed was called since changed last received an element
	changed chan struct{} // the channel that Changed returns
	version int64         // the data_version when changed last received an element
}

const (
	// maxBatch is the maximum number of operations in a transaction, all of which fail with it.
	maxBatch = 256
	// pollEvery is the interval of polls for other processes' commits while a caller of Changed waits.
	pollEvery = 200 * time.Millisecond
)

func (s *Store) startWriter() {
	s.writer.wake, s.writer.ended = make(chan struct{}, 1), make(chan struct{})
	s.writer.changed = make(chan struct{}, 1)
	go s.writeLoop()
}

// stopWriter waits until queued operations are committed, and stops the writer. It returns false if there was
// no running writer.
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

// do runs an operation in the writer and returns its error once the transaction is committed. If ctx ends
// before the writer has taken the operation, do returns the context's error and nothing is changed; later, do
// waits for the commit.
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
		// Callers that were just answered may have another operation, which can join this batch.
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
	delta [len(stateNumbers) + 1]int64 // changes of the counts, by state number
	fresh map[scope]int64              // scopes inserted by this batch
	err   error                        // the first error of the database; later statements do nothing
}

// commit runs operations in one transaction and wakes their callers.
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

// transact runs and commits operations. After an error none of their changes is visible (but see Store).
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
	// If a file was removed or replaced, the commit went to a file that other processes don't see.
	return s.checkFiles()
}

// rollBack rolls back the open transaction. If that fails the store can't be used any more.
//
// After a disk error the store stays usable: WAL frames that could not be synced are not valid for any
// process, and the next commit overwrites them, so nothing depends on a failed sync that the kernel may
// report only once.
func (s *Store) rollBack() error {
	_, err := s.stmts.rollback.Exec()
	if err == nil || strings.Contains(err.Error(), "no transaction is active") {
		return nil // SQLite has rolled back already (a full disk, an error of the disk), or the commit was done
	}
	s.lost.Store(&StoreError{Op: "roll back", Path: s.path(dbName), Err: err})
	return err
}

// overwrite commits only the time, to overwrite what a failed commit may have left in the WAL, so that no
// process finds it there after this one was killed. If the disk can't sync this commit either, the failed
// commit can reappear only after a loss of power.
func (s *Store) overwrite() error {
	b := &batch{s: s}
	b.exec(&s.stmts.begin)
	b.exec(&s.stmts.totals, s.clock.now(), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	b.exec(&s.stmts.commit)
	if b.err != nil {
		return s.rollBack() // the caller reports the error of the failed commit
	}
	return nil
}

// exec runs a statement and returns the number of changed rows. It does nothing after an error of the batch.
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

// insert runs a statement that inserts one row, and returns the row id; 0 if it inserted none.
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

// moved counts the change of an intent from one state number to another; from is 0 for a new intent.
func (b *batch) moved(from, to int) {
	b.delta[from]--
	b.delta[to]++
}

// watched is a file of the store that must not be replaced while the store is open. SQLite does not notice
// that a file was removed, and would keep writing to it while the next process creates another.
type watched struct {
	path string
	info os.FileInfo
}

// watchFiles records the identity of the store's files.
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

// checkFiles returns an error if one of the files was removed or replaced. The store can't be used after
// that, because other processes don't see its files.
func (s *Store) checkFiles() error {
	for _, f := range s.files {
		info, err := os.Lstat(f.path)
		switch {
		case err == nil && os.SameFile(info, f.info):
			continue
		case err != nil && !errors.Is(err, fs.ErrNotExist):
		case f.path == s.owner.path:
			err = errLock // other processes take this owner for dead
		default:
			err = errLost
		}
		s.lost.Store(&StoreError{Op: "commit", Path: f.path, Err: err})
		return s.usable()
	}
	return nil
}

// usable returns an error if the store can't be used any more.
func (s *Store) usable() error {
	if err := s.lost.Load(); err != nil {
		return err
	}
	return nil
}

// Changed returns a channel that receives an element when another process has committed a change. A call
// starts polling, every 200 ms, until the next such commit; without a call there is no polling. All callers
// share one channel, so one element wakes only one of them.
func (s *Store) Changed() <-chan struct{} {
	if s.writer.asked.CompareAndSwap(false, true) {
		notify(s.writer.wake)
	}
	return s.writer.changed
}

// poll sends to changed if another process has committed. PRAGMA data_version does not change with commits of
// the writer's own connection.
func (s *Store) poll() {
	var version int64
	if err := s.stmts.version.QueryRow().Scan(&version); err != nil {
		s.cfg.Log.Warn("can't poll for other processes' changes of intents", "err", s.failed("read", dbName, err))
		return
	}
	if version != s.writer.version {
		s.writer.version = version
		s.writer.asked.Store(false)
		notify(s.writer.changed)
	}
}
