// Command catalogd checks, explains and serves a declarative tool catalog. Each command has its own small
// file; main.go parses the command line and defines the exit codes: 0 for success, 1 if the catalog, a test
// or a call has a problem, 2 if the command could not run at all.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/internal/mcpserver"
	"github.com/catalogd/catalogd/internal/progress"
	"github.com/catalogd/catalogd/loader"
)

// endTime is how long a command may take to shut down after SIGTERM: calls drain, and then everything is
// closed.
const endTime = mcpserver.Drain + time.Second

func main() {
	// The standard logger belongs to net/http's client, which writes there what a server sent without a request: bytes
	// that may repeat a secret. The connection is closed, and everything else is logged with slog.
	log.SetOutput(io.Discard)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() {
		time.Sleep(endTime)
		fmt.Fprintf(os.Stderr, "catalogd: not ended in time, after %v; the process ends now\n", endTime)
		os.Exit(1)
	})
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

type cli struct {
	Check   checkCmd   `cmd:"" help:"Report every problem of a catalog, with file, line and column."`
	Doctor  doctorCmd  `cmd:"" help:"Check what a daemon needs of this machine: state, sandbox, address, commands, servers, clock, limits."`
	Build   buildCmd   `cmd:"" help:"Compile a catalog into one file, for serve --build."`
	Serve   serveCmd   `cmd:"" help:"Serve every branch over MCP, and reload on change; on loopback, or with tokens on any address."`
	Stdio   stdioCmd   `cmd:"" help:"Serve one branch over MCP on standard input and output, for desktop clients."`
	Init    initCmd    `cmd:"" help:"Write a starter catalog, or bring what is catalogd's up to this version."`
	List    listCmd    `cmd:"" help:"List the tools that each branch shows."`
	Call    callCmd    `cmd:"" help:"Call a tool through a branch, or show what a call would run."`
	Act     actCmd     `cmd:"" help:"Run the tool calls of a model provider's message, and print the results in its form."`
	Schema  schemaCmd  `cmd:"" help:"Print the tools of a branch with their JSON Schemas, as MCP clients see them."`
	Explain explainCmd `cmd:"" help:"Explain the decisions about a call: which rules apply, and their positions."`
	Input   inputCmd   `cmd:"" help:"Print the policy input for a call, for opa eval."`
	Trust   trustCmd   `cmd:"" help:"List every server and outward binding with its trust decision."`
	Lock    lockCmd    `cmd:"" help:"Ask trusted servers for their tools, and write catalog.lock.json for review."`
	Drift   driftCmd   `cmd:"" help:"Show how servers' current definitions differ from the locked ones."`
	Import  importCmd  `cmd:"" help:"Import configurations of other programs: mcp-config."`
	Export  exportCmd  `cmd:"" help:"Write configurations for other programs: mcp-config."`
	Matrix  matrixCmd  `cmd:"" help:"Show who sees and may call what, by branch or principal; --format csv says why."`
	Diff    diffCmd    `cmd:"" help:"Show the effects of a change between directories or git revisions: tools, visibility, trust."`
	Test    testCmd    `cmd:"" help:"Run the policy's tests and the tools' examples."`
	Policy  policyCmd  `cmd:"" help:"Show the schemas of policy inputs."`
	Servers serversCmd `cmd:"" help:"Show the health of the upstream servers of a running daemon, or the servers that the catalog declares."`
	Status  statusCmd  `cmd:"" help:"Show what a running daemon serves, and why newer files are not served."`
	Intents intentsCmd `cmd:"" help:"List calls with a side effect, and approve, refuse, cancel, retry or resolve them."`
	Token   tokenCmd   `cmd:"" help:"Make, list and revoke clients' tokens."`
	Help    helpCmd    `cmd:"" help:"Show help for a command."`

	Completion completionCmd `cmd:"" help:"Print the script that completes command lines in bash, zsh or fish, with the catalog's branches and tools."`

	Version versionCmd `cmd:"" help:"Print the version."`

	Complete      completeCmd      `cmd:"" hidden:"" help:"Answer the completion scripts of shells."`
	Man           manCmd           `cmd:"" hidden:"" help:"Write the man pages."`
	CompileWorker compileWorkerCmd `cmd:"" hidden:"" help:"Compile for another catalogd, over standard input and output."`

	ShowVersion kong.VersionFlag `name:"version" help:"Print the version."`

	logFlags

	Format string `enum:"text,json,csv,markdown,junit" default:"text" help:"How to print: text or json; some commands have csv, markdown or junit too."`
}

// printer is a command with additional output formats.
type printer interface{ formats() []string }

// formatsOf returns the output formats of a command.
func formatsOf(command *kong.Node) []string {
	formats := []string{"text", "json"}
	if p, ok := command.Target.Addr().Interface().(printer); ok {
		formats = append(formats, p.formats()...)
	}
	return formats
}

// catalogFlags are shared by every command that opens a catalog directory.
type catalogFlags struct {
	Tag             []string `short:"t" placeholder:"KEY=VALUE" sep:"none" help:"Set a CUE tag; may be given several times."`
	MaxFileBytes    int64    `default:"1048576" help:"Refuse larger files."`
	MaxCatalogBytes int64    `default:"8388608" help:"Refuse larger catalogs."`
	MaxFiles        int      `default:"5000" help:"Refuse catalogs of more files."`
	MaxTools        int      `default:"10000" help:"Refuse catalogs of more tools."`

	CompileTimeout time.Duration `default:"10s" help:"How long evaluating one package of CUE may take."`
	CompileMemory  int64         `default:"1073741824" help:"How many bytes of memory evaluating CUE may take."`

	Functions string `placeholder:"FILE" help:"Descriptions of the Go functions of the program that embeds the catalog (docs/go.md), to check it and look at it; - reads standard input."`

	DecisionTimeout time.Duration `default:"5s" help:"Time limit of the policy for one decision of a build or check."`
}

// config returns the configuration of the catalog to open: the one at dir, or the nearest one if dir is empty. It returns an error only for a mistake on the
// command line: a missing directory has no problems to report.
func (f catalogFlags) config(e *env, dir string) (catalogd.Config, error) {
	dir, err := e.root(dir)
	if err != nil {
		return catalogd.Config{}, err
	}
	cfg := catalogd.Config{
		Dir: dir, Tags: f.Tag, Version: version(), Log: e.log,
		Limits: loader.Limits{FileBytes: f.MaxFileBytes, CatalogBytes: f.MaxCatalogBytes, Files: f.MaxFiles, Tools: f.MaxTools},
		Worker: []string{compileWorker}, CompileTimeout: f.CompileTimeout, CompileMemory: f.CompileMemory,
		BuildDeadline: f.DecisionTimeout, FunctionsElsewhere: true,
	}
	if min(f.MaxFileBytes, f.MaxCatalogBytes, int64(f.MaxFiles), int64(f.MaxTools)) < 1 {
		return cfg, errors.New("--max-file-bytes, --max-catalog-bytes, --max-files and --max-tools must be at least 1")
	}
	if f.CompileTimeout < 100*time.Millisecond || f.CompileMemory < 64<<20 {
		return cfg, errors.New("--compile-timeout must be at least 100ms and --compile-memory at least 67108864 (64 MiB), which a small catalog needs")
	}
	if f.DecisionTimeout < 100*time.Millisecond {
		return cfg, errors.New("--decision-timeout must be at least 100ms")
	}
	if cfg.Functions, err = f.functions(e); err != nil {
		return cfg, err
	}
	return cfg, noDirectory(cfg.Dir)
}

// env is the environment of a command.
type env struct {
	ctx            context.Context
	meter          *progress.Meter // of ctx
	stdin          io.Reader
	stdout, stderr io.Writer
	json           bool
	format         string // json and the additional formats of the command
	log            *slog.Logger
	logs           logFlags
	// document: the output is meant to be stored in a file, so problems go to stderr.
	document bool
	// below is the working directory relative to the catalog's root, if the root was found above it.
	below string
}

// errFailed ends a run with exit code 1; the problem has already been printed.
var errFailed = errors.New("failed")

// newParser returns the parser of the command line, which sets the fields of c.
func newParser(c *cli, stdout, stderr io.Writer, exit func(code int)) *kong.Kong {
	parser, err := kong.New(c,
		kong.Name("catalogd"),
		kong.Description("A declarative tool catalog with a policy engine: tools in CUE, trust and access in Rego, served over MCP."),
		kong.Writers(stdout, stderr),
		kong.Exit(exit),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Vars{"version": versionLine()},
	)
	if err != nil {
		panic(err) // the definition of the command line is wrong
	}
	return parser
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	stderr = printable{newScreen(stderr)}
	if isTerminal(stdout) { // a pipe and a file get each byte
		stdout = printable{stdout}
	}
	var c cli
	exited := -1
	parser := newParser(&c, stdout, stderr, func(code int) { exited = code })
	nothing := len(args) == 0
	if nothing { // help on stderr and exit code 2, because nothing was done
		parser.Stdout, args = stderr, []string{"help"}
	}
	if args[0] == "help" {
		args = append(slices.Clone(args[1:]), "--help")
	}
	parsed, err := parser.Parse(args)
	switch {
	case nothing:
		return 2
	case exited >= 0:
		return exited // --help, --version
	}
	if err != nil {
		fmt.Fprintf(stderr, "catalogd: %s\n", usage(ctx, err, parser.Model.Node, args))
		return 2
	}
	if formats := formatsOf(parsed.Selected()); !slices.Contains(formats, c.Format) {
		fmt.Fprintf(stderr, "catalogd: %s prints no %s; it has %s\n", parsed.Selected().FullPath()[len("catalogd "):], c.Format, strings.Join(formats, ", "))
		return 2
	}
	ctx, meter := progress.With(ctx)
	e := &env{ctx: ctx, meter: meter, stdin: stdin, stdout: stdout, stderr: stderr, json: c.Format == "json", format: c.Format, logs: c.logFlags}
	// A command that runs once prints its own errors; only internal faults of catalogd are logged.
	e.log = e.logger(slog.LevelError)
	switch err := parsed.Run(e); {
	case err == nil:
		return 0
	case errors.Is(err, errFailed):
		return 1
	default:
		return e.fail(asWritten(ctx, parser.Model.Node, args).hinted(err))
	}
}
