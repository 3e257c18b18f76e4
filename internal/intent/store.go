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

// Durability says what an answered change of a Store survives.
type Durability string

const (
	// Power: the loss of power. Each commit waits until the disk says that it has the data
	// (synchronous=FULL).
	Power Durability = "power"
	// Process: the end of the process, kill -9 included. A loss of power may undo the last commits, in order,
	// and damages nothing (synchronous=NORMAL: SQLite then syncs at checkpoints alone).
	Process Durability = "process"
)

// Config says which store to open, and how.
type Config struct {
	// Dir is the folder of the store, made with mode 0700 where it is not there. It must be the user's own,
	// no symbolic link, and on a local file system.
	Dir string
	// Durability is Power where empty.
	Durability Durability
	// Serves: this owner executes approved intents that no live owner has.
	Serves bool
	// KeyRetention is for how long after staging a key names its intent (24 h). An unfinished intent keeps
	// its key.
	KeyRetention time.Duration
	// MaxAge (30 days, since its end), MaxCount (1,000,000) and MaxBytes (1 GiB of the file that is in use)
	// are what Sweep keeps of ended intents. It never removes an unfinished or unknown one, nor one whose key
	// still names it.
	MaxAge   time.Duration
	MaxCount int
	MaxBytes int64
	// MaxResult is the size in bytes (1 MiB) over which a result is kept as its digest and size.
	MaxResult int64
	// Log receives what is worth a warning; slog.Default where nil.
	Log *slog.Logger

	wall func() time.Time // the clock on the wall; time.Now but in tests
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
		return c, errors.New("a limit of the store of intents is negative")
	}
	return c, nil
}

// Store is the durable record of intents: an SQLite database in a folder, shared by any number of processes
// of one machine. Each process that opens it is an owner, alive until it closes the store or ends, however it
// ends.
//
// All changes of a process go through one goroutine, which commits together what waits together (commit.go).
// A change that returns nil is durable; one that returns a *StoreError must be taken as undone by the caller,
// who therefore runs nothing. It may, when an error came while a commit was written to the disk, be found
// done after a loss of power. That is safe: what then shows as attempted becomes unknown, what shows as staged
// becomes cancelled, and no process reads it before. What shows as awaiting an approval waits for a person.
//
// It is safe for concurrent use.
type Store struct {
	cfg   Config
	dir   string // absolute
	files []watched
	lost  atomic.Pointer[StoreError] // why nothing is written or read any more
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
	schemaVersion = 1
)

// schema: seq orders intents, and is never used twice, since Sweep leaves the newest row. A state is its
// number in stateNumbers. A scope is a branch, a principal and a tool; there are as many as have ever staged
// something. totals has one row: the newest time that was written and how many intents are in each state,
// changed in the same transaction.
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
	arguments TEXT, result TEXT
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

// Open opens the store and registers this process as an owner. Nothing is recovered yet: see Recover. A
// folder that others may enter, is a symbolic link or is not on a local file system is an ErrUnsafe; anything
// else that is wrong with the files is a *StoreError. A file that was there and is gone, is damaged or is
// another version's is never replaced.
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
	// SQLite can't be asked to wait while a database is made and switched to WAL, so openers wait for each
	// other here.
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
	// The first commit proves that the store can be written, and syncs what a killed process may have left
	// unsynced.
	if err := s.do(context.WithoutCancel(ctx), "open", func(*batch) error { return nil }); err != nil {
		return nil, err
	}
	return s, nil
}

// Close waits for the changes that are under way, and ends this owner: what it has not ended is then a dead
// owner's.
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

// Owner names this process's opening of the store.
func (s *Store) Owner() string { return s.owner.name }

func (s *Store) path(name string) string { return filepath.Join(s.dir, name) }

// prepareFile makes the database's file where the store is new, and refuses what is no file of the user
// alone.
func (s *Store) prepareFile() error {
	name := s.path(dbName)
	info, err := os.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		// The folder of owners is made after the database, so with it there was one.
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
	// It is never opened here: closing any descriptor of it would drop SQLite's locks in this process
	// (fcntl(2)).
	owner, ok := ownerOf(info)
	switch {
	case !info.Mode().IsRegular():
		return s.failed("open", dbName, fmt.Errorf("it is no regular file (%s)", info.Mode()))
	case !ok || owner.uid != os.Geteuid():
		return s.failed("open", dbName, errors.New("it belongs to another user"))
	case owner.links != 1:
		return s.failed("open", dbName, errors.New("it has a second name (hard link), under which changes would be missed"))
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
		err = fmt.Errorf("it is no regular file (%s)", info.Mode())
	}
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		err = os.Chmod(name, 0o600)
	}
	return err
}

// busyWait is how long a commit waits for another process's.
const busyWait = 10 * time.Second

// fdatasync has SQLite sync as it does in distributions' builds, without the time stamps, which no commit
// needs.
var fdatasync = sync.OnceFunc(func() {
	_, _ = sqlite.Fdatasync(true) // elsewhere it stays with fsync or F_FULLFSYNC
})

// source is the connection string. mmap_size is 0: a file that is cut short would end the process (SIGBUS).
// The WAL is checkpointed by the commit that makes it longer than 2,000 pages, and cut to 64 MiB if a long
// reader made it grow.
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
	// So that the names of the files survive as well as what is in them.
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
		// A new file has nothing in it yet. Anything in it is somebody else's.
		var objects int
		if err := s.conn.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&objects); err != nil {
			return err
		}
		if objects > 0 {
			return errForeign
		}
		if _, err := os.Lstat(s.path(ownersName)); err == nil {
			return errLost // emptied: the folder of owners is made after the schema
		}
		if err := s.conn.QueryRowContext(ctx, "PRAGMA journal_mode(WAL)").Scan(&mode); err != nil {
			return err
		}
		if mode != "wal" {
			return fmt.Errorf("SQLite can't keep a write-ahead log here (journal mode %q)", mode)
		}
		_, err := s.conn.ExecContext(ctx, fmt.Sprintf(
			"BEGIN IMMEDIATE;%s;PRAGMA application_id = %d;PRAGMA user_version = %d;COMMIT;",
			schema, applicationID, schemaVersion))
		return err
	case id != applicationID:
		return errForeign
	case version > schemaVersion:
		return fmt.Errorf("%w: it has version %d, and this catalogd knows %d", errNewer, version, schemaVersion)
	case version < schemaVersion:
		return errForeign
	}
	return nil
}

// checkPragmas reads back what durability hangs on.
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

// syncDir makes the names in a folder durable.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	// Some file systems can't sync a folder, and have nothing to sync then.
	if err := f.Sync(); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOTSUP) {
		return errors.Join(err, f.Close())
	}
	return f.Close()
}
