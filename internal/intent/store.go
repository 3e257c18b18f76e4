package intent

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	"modernc.org/sqlite"
)

// Durability says which failures a committed change survives.
type Durability string

const (
	// Power means that a committed change survives a loss of power: each commit waits until the disk reports
	// that the data is written (synchronous=FULL).
	Power Durability = "power"
	// Process means that a committed change survives the end of the process, even by SIGKILL. A loss of power
	// may undo the last commits, in order, but damages nothing (synchronous=NORMAL: SQLite syncs only at
	// checkpoints).
	Process Durability = "process"
)

// Config configures a Store. Dir is required; a zero field means its default.
type Config struct {
	// Dir is the folder of the store, created with mode 0700 if it does not exist. It must belong to this
	// user, not be a symbolic link, and be on a local file system.
	Dir string
	// Durability is by default Power.
	Durability Durability
	// Serves says that this process executes approved intents that no live process owns.
	Serves bool
	// KeyRetention is how long after staging an idempotency key identifies its intent, by default 24 h. The
	// key of an unfinished intent does not expire.
	KeyRetention time.Duration
	// MaxAge (by default 30 days after the end), MaxCount (1,000,000) and MaxBytes (1 GiB, of the used part
	// of the file) limit the ended intents that Sweep keeps.
	MaxAge   time.Duration
	MaxCount int
	MaxBytes int64
	// MaxResult is the maximum size in bytes of a stored result, by default 1 MiB. Of a larger one only the
	// size and digest are stored.
	MaxResult int64
	// Log receives warnings; nil means slog.Default.
	Log *slog.Logger

	wall func() time.Time // time.Now, except in tests
}

func (c Config) withDefaults() (Config, error) {
	set := func(p *time.Duration, to time.Duration) {
		if *p == 0 {
			*p = to
		}
	}
	set(&c.KeyRetention, 24*time.Hour)
	set(&c.MaxAge, 30*24*time.Hour)
	if c.Durability == "" {
		c.Durability = Power
	}
	if c.MaxCount == 0 {
		c.MaxCount = 1_000_000
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = 1 << 30
	}
	if c.MaxResult == 0 {
		c.MaxResult = 1 << 20
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.wall == nil {
		c.wall = time.Now
	}
	switch {
	case c.Dir == "":
		return c, errors.New("the store of intents has no folder")
	case c.Durability != Power && c.Durability != Process:
		return c, fmt.Errorf("durability %q of the store of intents: want %q or %q", c.Durability, Power, Process)
	case c.KeyRetention < 0 || c.MaxAge < 0 || c.MaxCount < 0 || c.MaxBytes < 0 || c.MaxResult < 0:
		return c, errors.New("a limit of the store of intents is negative; want zero or more")
	}
	return c, nil
}

// Store is the durable record of intents: an SQLite database in a folder, which any number of processes of
// one machine share. Each process that opens it is an owner, and is alive until it closes the store or ends.
//
// One goroutine per process makes all changes, and commits those that wait in one transaction (commit.go). A
// change that returns nil is durable. After a *StoreError the caller must take the change as not made, and
// run nothing. If the error came while the commit was written to disk, a loss of power may still make the
// change visible later. That is safe: an intent that then shows as Attempted becomes Unknown, one that shows
// as Staged becomes Cancelled, and one that shows as AwaitingApproval waits for a person.
//
// It is safe for concurrent use.
type Store struct {
	cfg   Config
	dir   string // absolute
	files []watched
	lost  atomic.Pointer[StoreError] // why the store can't be used any more
	clock clock
	owner *owner

	write  *sql.DB
	conn   *sql.Conn // the writer's, the only one of write
	read   *sql.DB
	stmts  statements
	writer writer
	scopes scopes
}

const (
	dbName        = "intents.db"
	ownersName    = "owners"
	openName      = "open.lock"
	applicationID = 0x63617449 // "catI"
	schemaVersion = 2
)

// schema is the schema of the database. seq orders intents and is never reused, because Sweep keeps the
// newest row. A state is its number in stateNumbers. A scope is a combination of branch, principal and tool
// that has staged an intent; scopes are never removed. totals has one row, which each transaction updates:
// the newest time in the store and the number of intents in each state.
const schema = `
CREATE TABLE scopes (
	id INTEGER PRIMARY KEY,
	branch TEXT NOT NULL, principal TEXT NOT NULL, tool TEXT NOT NULL,
	UNIQUE (principal, branch, tool)
) STRICT;
CREATE TABLE intents (
	seq INTEGER PRIMARY KEY,
	state INTEGER NOT NULL,
	scope INTEGER NOT NULL REFERENCES scopes(id),
	id BLOB NOT NULL,
	owner TEXT NOT NULL,
	staged INTEGER NOT NULL, ended INTEGER NOT NULL, expires INTEGER NOT NULL,
	attempts INTEGER NOT NULL, handed INTEGER NOT NULL, repeatable INTEGER NOT NULL,
	digest TEXT NOT NULL, key TEXT,
	credential TEXT NOT NULL, print TEXT NOT NULL, policy TEXT NOT NULL, generation TEXT NOT NULL,
	approval TEXT,
	history TEXT NOT NULL,
	code TEXT NOT NULL, message TEXT NOT NULL, result_bytes INTEGER NOT NULL, result_digest TEXT NOT NULL,
	arguments TEXT, result TEXT,
	session TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE UNIQUE INDEX intents_id ON intents(id);
CREATE INDEX intents_state ON intents(state);
CREATE INDEX intents_scope ON intents(scope);
CREATE INDEX intents_key ON intents(scope, key) WHERE key IS NOT NULL;
CREATE INDEX intents_handed ON intents(scope, digest) WHERE handed = 1 AND ended = 0;
CREATE TABLE totals (
	one INTEGER PRIMARY KEY CHECK (one = 1),
	newest INTEGER NOT NULL,
	n1 INTEGER NOT NULL, n2 INTEGER NOT NULL, n3 INTEGER NOT NULL, n4 INTEGER NOT NULL, n5 INTEGER NOT NULL, n6 INTEGER NOT NULL,
	n7 INTEGER NOT NULL, n8 INTEGER NOT NULL, n9 INTEGER NOT NULL, n10 INTEGER NOT NULL, n11 INTEGER NOT NULL
) STRICT;
INSERT INTO totals VALUES (1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
`

// sqlUpgrade makes schema of that of version 1.
const sqlUpgrade = "ALTER TABLE intents ADD COLUMN session TEXT NOT NULL DEFAULT ''"

// Open opens the store and registers this process as an owner. It does not call Recover. The error wraps
// ErrUnsafe if other users may enter the folder, or if it is a symbolic link or not on a local file system;
// any other problem with the files is a *StoreError. Open never replaces a file that was removed, is damaged
// or is of another version.
func Open(ctx context.Context, cfg Config) (_ *Store, err error) {
	cfg, err = cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Store{cfg: cfg}
	if s.dir, err = prepareDir(cfg.Dir); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	// SQLite can't wait for another process that creates a database and switches it to WAL, so processes that
	// open the store wait for each other here.
	unlock, err := lockFile(ctx, s.path(openName))
	if err != nil {
		return nil, s.failed("open", openName, err)
	}
	defer unlock()
	if err := s.prepareFile(); err != nil {
		return nil, err
	}
	if err := s.openDatabase(ctx); err != nil {
		return nil, err
	}
	if err := s.register(); err != nil {
		return nil, err
	}
	if err := s.stmts.prepare(ctx, s); err != nil {
		return nil, s.failed("open", dbName, err)
	}
	if err := s.watchFiles(); err != nil {
		return nil, err
	}
	s.startWriter()
	// The first commit checks that the store can be written, and syncs what a killed process may not have
	// synced.
	if err := s.do(context.WithoutCancel(ctx), "open", func(*batch) error { return nil }); err != nil {
		return nil, err
	}
	return s, nil
}

// Close waits for queued changes and ends this owner: its unfinished intents then belong to a dead owner.
// Closing twice does nothing.
func (s *Store) Close() error {
	if !s.stopWriter() {
		return nil
	}
	return s.close()
}

func (s *Store) close() error {
	s.stopWriter()
	var errs []error
	errs = append(errs, s.stmts.close())
	if s.conn != nil {
		errs = append(errs, s.conn.Close())
	}
	for _, db := range []*sql.DB{s.read, s.write} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	if s.owner != nil {
		errs = append(errs, s.owner.end())
	}
	if err := errors.Join(errs...); err != nil {
		return s.failed("close", dbName, err)
	}
	return nil
}

// Owner returns the name of this owner: unique for each opening of a store.
func (s *Store) Owner() string { return s.owner.name }

func (s *Store) path(name string) string { return filepath.Join(s.dir, name) }

// prepareFile creates the database file if the store is new, and returns an error if an existing one is not a
// regular file that belongs to this user alone.
func (s *Store) prepareFile() error {
	name := s.path(dbName)
	info, err := os.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		// The folder of owners is created after the database, so if it exists, the database was removed.
		for _, left := range []string{ownersName, dbName + "-wal"} {
			if _, err := os.Lstat(s.path(left)); err == nil {
				return s.failed("open", dbName, errLost)
			}
		}
		// SQLite gives its other files the mode of this one.
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return s.failed("open", dbName, err)
		}
		return s.wrap("open", dbName, f.Close())
	}
	if err != nil {
		return s.failed("open", dbName, err)
	}
	// The file is not opened here: closing any descriptor of it would drop SQLite's locks in this process
	// (fcntl(2)).
	owner, ok := ownerOf(info)
	switch {
	case !info.Mode().IsRegular():
		return s.failed("open", dbName, fmt.Errorf("it is not a regular file (%s)", info.Mode()))
	case !ok || owner.uid != os.Geteuid():
		return s.failed("open", dbName, errors.New("it belongs to another user"))
	case owner.links != 1:
		return s.failed("open", dbName, errors.New("it has a second hard link, through which it could be changed unnoticed"))
	}
	for _, name := range []string{dbName, dbName + "-wal", dbName + "-shm"} {
		if err := onlyOurs(s.path(name)); err != nil {
			return s.failed("open", name, err)
		}
	}
	return s.wrap("open", dbName, unix.Access(name, unix.W_OK|unix.R_OK))
}

func onlyOurs(name string) error {
	info, err := os.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("it is not a regular file (%s)", info.Mode())
	}
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		err = os.Chmod(name, 0o600)
	}
	return err
}

// busyWait is how long a commit waits for another process's commit.
const busyWait = 10 * time.Second

// fdatasync makes SQLite use fdatasync(2), which skips time stamps, as distributions' builds do.
var fdatasync = sync.OnceFunc(func() {
	_, _ = sqlite.Fdatasync(true) // other systems keep fsync or F_FULLFSYNC
})

// source returns the connection string. mmap_size is 0 because a truncated file would kill the process
// (SIGBUS). The commit that makes the WAL longer than 2,000 pages checkpoints it; if a long reader made it
// grow, it is then truncated to 64 MiB.
func (s *Store) source(cacheKiB int, more ...string) string {
	synchronous := "FULL"
	if s.cfg.Durability == Process {
		synchronous = "NORMAL"
	}
	q := url.Values{"mode": {"rw"}, "_error_rc": {"1"}, "_dqs": {"0"}, "_defensive": {"1"}, "_pragma": append([]string{
		"busy_timeout(" + strconv.FormatInt(busyWait.Milliseconds(), 10) + ")",
		"cache_size(-" + strconv.Itoa(cacheKiB) + ")",
		"cell_size_check(1)",
		"checkpoint_fullfsync(1)", "fullfsync(1)", // macOS: fsync alone doesn't reach the disk there
		"journal_size_limit(67108864)",
		"mmap_size(0)",
		"synchronous(" + synchronous + ")",
		"temp_store(memory)",
		"trusted_schema(0)",
		"wal_autocheckpoint(2000)",
	}, more...)}
	return (&url.URL{Scheme: "file", Path: s.path(dbName), RawQuery: q.Encode()}).String()
}

func (s *Store) openDatabase(ctx context.Context) error {
	fdatasync()
	var err error
	if s.write, err = sql.Open("sqlite", s.source(8<<10)); err != nil {
		return s.failed("open", dbName, err)
	}
	if s.conn, err = s.write.Conn(ctx); err != nil {
		return s.failed("open", dbName, err)
	}
	if s.read, err = sql.Open("sqlite", s.source(2<<10, "query_only(1)")); err != nil {
		return s.failed("open", dbName, err)
	}
	s.read.SetMaxOpenConns(2)
	s.read.SetMaxIdleConns(2)
	if err := s.makeSchema(ctx); err != nil {
		return s.failed("open", dbName, err)
	}
	if err := s.checkPragmas(ctx); err != nil {
		return s.failed("open", dbName, err)
	}
	// Make the names of the files durable too.
	return s.wrap("open", dbName, syncDir(s.dir))
}

func (s *Store) makeSchema(ctx context.Context) error {
	var id, version int
	read := func() error {
		if err := s.conn.QueryRowContext(ctx, "PRAGMA application_id").Scan(&id); err != nil {
			return err
		}
		return s.conn.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version)
	}
	if err := read(); err != nil {
		return err
	}
	var mode string
	switch {
	case id == 0 && version == 0:
		// A new file is empty. If it has objects, it is another program's.
		var objects int
		if err := s.conn.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&objects); err != nil {
			return err
		}
		if objects > 0 {
			return errForeign
		}
		if _, err := os.Lstat(s.path(ownersName)); err == nil {
			return errLost // truncated: the folder of owners is created after the schema
		}
		if err := s.conn.QueryRowContext(ctx, "PRAGMA journal_mode(WAL)").Scan(&mode); err != nil {
			return err
		}
		if mode != "wal" {
			return fmt.Errorf("SQLite can't use a write-ahead log here (journal mode %q)", mode)
		}
		_, err := s.conn.ExecContext(ctx, fmt.Sprintf(
			"BEGIN IMMEDIATE;%s;PRAGMA application_id = %d;PRAGMA user_version = %d;COMMIT;",
			schema, applicationID, schemaVersion))
		return err
	case id != applicationID:
		return errForeign
	case version > schemaVersion:
		return fmt.Errorf("%w: it has version %d, this catalogd supports %d", errNewer, version, schemaVersion)
	case version == 1:
		// A catalogd of version 1 must not open it any more: it would execute what a conversation branch may
		// not do.
		_, err := s.conn.ExecContext(ctx, fmt.Sprintf("BEGIN IMMEDIATE;%s;PRAGMA user_version = %d;COMMIT;", sqlUpgrade, schemaVersion))
		return err
	case version < schemaVersion:
		return errForeign
	}
	return nil
}

// checkPragmas checks that the settings on which durability depends are in effect.
func (s *Store) checkPragmas(ctx context.Context) error {
	var mode string
	var synchronous int
	if err := s.conn.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil {
		return err
	}
	if err := s.conn.QueryRowContext(ctx, "PRAGMA synchronous").Scan(&synchronous); err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("its journal mode is %q, want %q", mode, "wal")
	}
	if want := map[Durability]int{Power: 2, Process: 1}[s.cfg.Durability]; synchronous != want {
		return fmt.Errorf("SQLite has synchronous=%d, want %d", synchronous, want)
	}
	return nil
}

// syncDir makes the directory entries of a folder durable.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	// Some file systems don't support syncing a folder; there is nothing to sync then.
	if err := f.Sync(); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOTSUP) {
		return errors.Join(err, f.Close())
	}
	return f.Close()
}
