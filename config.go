package catalogd

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/registry"
)

// Config says what to open: one of Dir, FS and Build is required. The zero value of every other field is useful.
type Config struct {
	// Dir is the catalog's root: the directory that holds schema.cue, catalog/ and policy/.
	Dir string
	// FS holds the catalog instead, such as an embed.FS. It is not watched; Reload reads it again. It may leave out
	// schema.cue, which is then that of this version. Dir, which may be empty, then only resolves relative
	// commands and secret files, and names the catalog in State.
	FS fs.FS
	// Build is a file that `catalogd build` wrote. It is served in place of the files in Dir, which then only
	// resolves relative commands and secret files; empty means the file's own directory. The file is not
	// watched; Reload reads it again.
	Build string
	// State is the state directory. It caches builds, for a fast start, and records what was adopted last,
	// whose policy decides at the next start. It is created with mode 0700; New refuses one that other users
	// may enter. Empty keeps nothing. So does a directory that can't be created, with a warning.
	State string
	// Bootstrap lets the first generation's own policy decide on it, whatever was adopted before.
	Bootstrap bool
	// Once opens the catalog for one look or call. State is read and not written. What the policy refuses is
	// a RefusedError of New, and last-good is not served instead; a decision that is not made in time is an
	// error of New.
	Once bool
	// Tags are CUE tags (key=value) for environment-specific values. They are part of the generation's
	// digest.
	Tags []string
	// Functions are the Go functions that declarations may name (binding: func: "NAME"). Those that none names are
	// no tools. New runs their Setup and Close their Teardown, in this order and in the reverse one.
	Functions []*registry.Function
	// Processors are Go functions that run before and after the calls of tools, in a fixed order that
	// registry.Processor has. A change of them is no change of the catalog: approvals stay valid.
	Processors []registry.Processor
	// FunctionsElsewhere says that another program embeds the catalog, and that this one only looks at it: a
	// function that Functions does not have is a warning, and its tool is hidden. registry.StandIn makes stand-ins
	// for described functions.
	FunctionsElsewhere bool
	// Limits cap what is read. Zero fields mean the defaults.
	Limits loader.Limits
	// Worker is the command line arguments with which this program, started again, calls CompileWorker. CUE
	// is then evaluated and jq programs run in child processes, within limits: a catalog that never finishes
	// is a problem of its file, a call fails whose arguments CUE does not check within 100 ms (which happens
	// only for tools whose schema can't state everything), and one whose jq program needs more than 5 s of
	// processor time or 256 MiB. Empty does both in this process, where such a catalog, such arguments or
	// such a program can use processor and memory without a limit, and a program can end the process.
	// Programs that take calls from strangers should set it.
	Worker []string
	// CompileTimeout limits the Worker's time for one package; zero means 10 s.
	CompileTimeout time.Duration
	// CompileMemory limits the Worker's memory, in bytes; zero means 1 GiB.
	CompileMemory int64
	// Tokens is a file that `catalogd token create` writes: who may use Handler and Serve, as which
	// principal. Run reads it again when it changes. Empty admits everyone on this machine as the operator,
	// and nobody else.
	Tokens string
	// Hosts are names under which clients reach Handler and Serve, beside the loopback names and the
	// listener's address. They count only with Tokens.
	Hosts []string
	// Serving bounds what clients can use: calls, sessions, streams and connections, and their times. Zero fields mean
	// the defaults (docs/operations.md).
	Serving ServingLimits
	// RequestStateKey is a file of 32 to 4,096 random bytes that seals the requestState of calls (MCP
	// 2026-07-28). Processes with the same key and catalog accept each other's, so that a proxy may send each
	// request to any of them; a call whose client could only be asked while the call runs on in one process
	// is then not asked. Empty is a random key, which accepts no state of another process.
	RequestStateKey string
	// ListTTL is how long a client of MCP 2026-07-28 may use a list of tools without asking again, at most 24 h; zero
	// means not at all.
	ListTTL time.Duration
	// Timing says how files are watched. Zero fields mean the defaults, and Log for its Logger.
	Timing loader.WatchConfig
	// PolicyDeadline limits the processor time of one decision about a call or about what a principal is
	// shown; zero means 100 ms. A decision that takes longer is no answer: the call fails, and may be
	// retried.
	PolicyDeadline time.Duration
	// BuildDeadline is the same for the decisions of builds, checks and comparisons; zero means 5 s. New
	// leaves out what takes longer, lists it in Status and asks again until it is decided. Anywhere else it
	// is an error.
	BuildDeadline time.Duration
	// Intents says how calls of tools with a side effect are recorded and executed.
	Intents Intents
	// DecisionLog says where every decision is logged; its zero value logs none.
	DecisionLog DecisionLog
	// Traces says where traces of calls are sent; its zero value sends none.
	Traces Traces
	// Version is this program's version for MCP clients and servers; empty means "devel".
	Version string
	// Log gets a line for each reload, decision and call; nil discards them.
	Log *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	if c.Dir == "" && c.Build != "" {
		c.Dir = filepath.Dir(c.Build)
	}
	switch {
	case c.Build != "" && c.FS != nil:
		return c, errors.New("the catalog is in Config.FS and in Config.Build; keep one")
	case c.Dir == "" && c.FS == nil:
		return c, errors.New("no catalog is named: set Config.Dir to the directory that holds schema.cue, catalog/ and policy/, or Config.FS")
	case c.Dir == "" && c.State != "":
		return c, errors.New("Config.State needs a Config.Dir, which names the catalog in it")
	case c.Dir != "":
		dir, err := filepath.Abs(c.Dir)
		if err != nil {
			return c, err
		}
		c.Dir = dir
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Timing.Logger == nil {
		c.Timing.Logger = c.Log
	}
	if c.Version == "" {
		c.Version = "devel"
	}
	if c.ListTTL < 0 || c.ListTTL > 24*time.Hour {
		return c, fmt.Errorf("the time for which a list may be used is %v; it must be from 0 to 24h", c.ListTTL)
	}
	return c, c.checkFunctions()
}

func (c Config) source() loader.Source {
	if c.FS != nil {
		return loader.Tree{FS: c.FS, Schema: schema, Limits: c.Limits, Tags: c.Tags}
	}
	return loader.Dir{Root: c.Dir, Limits: c.Limits, Tags: c.Tags}
}

// root is the name of the catalog in the state directory.
func (c Config) root() (string, error) {
	if c.Build != "" {
		return filepath.Abs(c.Build)
	}
	return c.Dir, nil
}

// stateKey reads the file of the key for requestStates; nil if there is none.
func (c Config) stateKey() ([]byte, error) {
	if c.RequestStateKey == "" {
		return nil, nil
	}
	const least, most = 32, 4096
	info, err := os.Stat(c.RequestStateKey)
	if err != nil {
		return nil, fmt.Errorf("the key for request states can't be read: %w", err)
	}
	if info.Mode().Perm()&0o007 != 0 {
		return nil, fmt.Errorf("the key for request states, %s, is open to every user of this machine: chmod o-rwx it", c.RequestStateKey)
	}
	key, err := os.ReadFile(c.RequestStateKey)
	if err != nil {
		return nil, fmt.Errorf("the key for request states can't be read: %w", err)
	}
	if len(key) < least || len(key) > most {
		return nil, fmt.Errorf("the key for request states, %s, has %d bytes; it must be %d to %d random ones, as of `head -c 32 /dev/urandom`",
			c.RequestStateKey, len(key), least, most)
	}
	return key, nil
}
