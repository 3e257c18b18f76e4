package intent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// ErrUnknown is wrapped by the errors for an id of which the store has no intent.
var ErrUnknown = errors.New("no such intent")

// errClosed is wrapped by the errors of a closed store.
var errClosed = errors.New("the store is closed")

var (
	errLost    = errors.New("the file was removed or replaced")
	errLock    = errors.New("the lock file of this process was removed or replaced")
	errForeign = errors.New("the file is another program's database")
	errNewer   = errors.New("a newer catalogd made it")
)

// StoreError is the error of a store that can't be read or written. A change that returns one counts as not
// made: the caller must not run anything that depends on it.
type StoreError struct {
	Op   string // the operation: open, stage, change, ...
	Path string // the file
	Err  error
}

func (e *StoreError) Error() string {
	return fmt.Sprintf("store of intents: %s %s: %v; %s", e.Op, e.Path, e.Err, e.remedy())
}

func (e *StoreError) Unwrap() error { return e.Err }

// remedy returns what an operator should do.
func (e *StoreError) remedy() string {
	var code int
	if err := (*sqlite.Error)(nil); errors.As(e.Err, &err) {
		code = err.Code()
	}
	const backup = "restore the folder from a backup; or, if none of its intents matters any more," +
		" remove it while no catalogd runs"
	switch {
	case errors.Is(e.Err, errClosed):
		return "open it again"
	case errors.Is(e.Err, errLost):
		return "stop every catalogd that uses the folder, then " + backup
	case errors.Is(e.Err, errLock):
		return "restart this catalogd"
	case errors.Is(e.Err, errForeign):
		return "name another folder with --intents"
	case errors.Is(e.Err, errNewer):
		return "run that version, or name another folder with --intents"
	case code&0xff == sqlite3.SQLITE_FULL, code == sqlite3.SQLITE_IOERR_SHMSIZE, errors.Is(e.Err, unix.ENOSPC), errors.Is(e.Err, unix.EDQUOT):
		return "free space on its disk"
	case code&0xff == sqlite3.SQLITE_CORRUPT, code&0xff == sqlite3.SQLITE_NOTADB, errors.Is(e.Err, errDamaged):
		return "the file is damaged: " + backup
	case code&0xff == sqlite3.SQLITE_READONLY, code&0xff == sqlite3.SQLITE_PERM,
		code&0xff == sqlite3.SQLITE_CANTOPEN, errors.Is(e.Err, fs.ErrPermission), errors.Is(e.Err, unix.EROFS):
		return "let this user read and write the folder and its files"
	case code&0xff == sqlite3.SQLITE_BUSY, errors.Is(e.Err, os.ErrDeadlineExceeded):
		return "another process holds its lock; stop that process if it hangs"
	case code&0xff == sqlite3.SQLITE_IOERR, errors.Is(e.Err, unix.EIO):
		return "check the disk and its free space"
	}
	return "check the folder and its disk"
}

// MovedError is the error of a change for which the intent is no longer in the expected state.
type MovedError struct {
	ID         string
	From, Have State
}

func (e *MovedError) Error() string {
	return fmt.Sprintf("intent %s is %s, no longer %s", e.ID, e.Have, e.From)
}

// OwnedError is the error of a change to an intent that another live process owns, or that nobody owns and
// must be claimed first (Owner is empty).
type OwnedError struct{ ID, Owner string }

func (e *OwnedError) Error() string {
	if e.Owner == "" {
		return fmt.Sprintf("intent %s has no owner: it must be claimed first", e.ID)
	}
	return fmt.Sprintf("intent %s is executed by another process (%s)", e.ID, e.Owner)
}

// ConflictError is the error for an idempotency key that an intent with other arguments already uses.
type ConflictError struct {
	Key    string
	Intent string // its id
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("the idempotency key %q already names intent %s, which has other arguments;"+
		" use another key, or the same arguments", e.Key, e.Intent)
}

// failed wraps err in a *StoreError unless it already contains one.
func (s *Store) failed(op, name string, err error) error {
	if e := (*StoreError)(nil); errors.As(err, &e) {
		return err
	}
	return &StoreError{Op: op, Path: s.path(name), Err: err}
}

// wrap is failed, nil for nil.
func (s *Store) wrap(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return s.failed(op, name, err)
}
