package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"sort"
	"strings"
	"time"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/contract/dialect"
	"github.com/catalogd/catalogd/internal/intent"
	"github.com/catalogd/catalogd/registry"
)

type callCmd struct {
	Branch  string `arg:"" help:"The branch to call through."`
	Tool    string `arg:"" help:"The tool to call."`
	Args    string `default:"{}" placeholder:"JSON" help:"The arguments, a JSON object; @FILE reads it from a file, - from standard input."`
	DryRun  bool   `help:"Print the exact command line, request or program that the call would run, without running it."`
	Dialect string `default:"mcp" placeholder:"NAME" help:"The provider's schema dialect that the arguments follow: with openai-strict, null means a missing argument."`
	Server  string `placeholder:"URL" help:"Ask a running daemon instead of calling in this process, such as http://127.0.0.1:8420, or here for the one that serves this directory; by default the environment's CATALOGD_SERVER."`
	Dir     string `short:"C" help:"The catalog's root; by default the nearest one, from the working directory upwards."`
	principalFlags

	Key  string        `name:"idempotency-key" placeholder:"KEY" help:"Idempotency key for a tool with a side effect: of your calls of the tool with the same key, only the first is executed, and the others return its outcome."`
	Wait time.Duration `default:"30s" help:"How long to wait for a side effect before printing a handle; 0 prints it at once. The command ends only when the effect has ended. With --server, the daemon's own setting applies."`
	// State and Bootstrap are stateFlags for a command that stores nothing.
	State     string `placeholder:"DIR" help:"The state directory of a daemon that serves this catalog, whose last adopted policy decides first, by default catalogd's own in the user's state directory; none disables this."`
	Bootstrap bool   `help:"Let the policy in the files decide on their adoption, instead of the last adopted policy."`
	intentFlags
	catalogFlags
}

// callOutput is the JSON form of a finished call.
type callOutput struct {
	ID string `json:"id,omitempty"`
	// Intent is the id of the intent of a call with a side effect.
	Intent   string           `json:"intent,omitempty"`
	Status   registry.Status  `json:"status"`
	Decision string           `json:"decision,omitempty"`
	Result   *registry.Result `json:"result,omitempty"`
	Error    *callError       `json:"error,omitempty"`
}

type callError struct {
	Code       registry.ErrorCode   `json:"code"`
	Message    string               `json:"message"`
	Violations []contract.Violation `json:"violations,omitempty"`
	Nearest    []string             `json:"nearest,omitempty"`
	// Cause is the error detail reserved for the operator. A daemon only logs it.
	Cause string `json:"cause,omitempty"`
}

func (c *callCmd) Run(e *env) error {
	if err := e.readArguments(&c.Args); err != nil {
		return err
	}
	d, err := dialect.Parse(c.Dialect)
	if err != nil {
		return err
	}
	if c.Key != "" {
		if err := registry.CheckIdempotencyKey(c.Key); err != nil {
			return fmt.Errorf("--idempotency-key can't be %w", err)
		}
	}
	principal, err := c.principal()
	if err != nil {
		return err
	}
	if !c.DryRun && c.Principal != "" {
		return errors.New("--principal, --group and --admin are for --dry-run: a call is made by the local operator, or through a daemon by the " +
			"bearer of " + tokenVariable)
	}
	if !c.DryRun || c.Server != "" {
		if c.Server, err = e.server(c.Server, placeFlags{dir: c.Dir, state: c.State}, false); err != nil {
			return err
		}
	}
	if c.Server != "" {
		base, err := url.Parse(c.Server)
		if err != nil || base.Host == "" {
			return notURL(c.Server)
		}
		if !strings.HasPrefix(strings.TrimSpace(c.Args), "{") {
			return errors.New("--args must be a JSON object of arguments by name") // the given text may contain a secret
		}
		if c.DryRun && d != dialect.MCP {
			return errors.New("a daemon plans a call with its arguments as catalogd has them; leave out --dialect")
		}
		if c.DryRun {
			return c.remotePlan(e)
		}
		call, err := callRemote(e.ctx, base, c.Branch, d, c.Tool, c.Key, json.RawMessage(c.Args))
		if err != nil {
			return err
		}
		h, handed := handleOf(call)
		if handed {
			call.Status = registry.Accepted
		}
		err = e.callEnded(call, " --server "+c.Server)
		if handed {
			e.handed(h, "--server "+c.Server)
		}
		return err
	}
	cfg, err := c.config(e, c.Dir)
	if err != nil {
		return err
	}
	if !c.DryRun { // a dry run executes nothing, and uses the current files
		stateFlags{c.State, c.Bootstrap}.keep(&cfg)
		c.set(&cfg)
		if err := setWait(&cfg, c.Wait); err != nil {
			return err
		}
	}
	catalog, err := e.open(cfg)
	if err != nil {
		return err
	}
	defer catalog.Close()
	branch := catalog.Branch(c.Branch).In(d).As(principal).Keyed(c.Key)
	if c.DryRun {
		plan, call, err := branch.Plan(e.ctx, c.Tool, json.RawMessage(c.Args))
		if err != nil {
			return err
		}
		if call.Err != nil {
			return e.callEnded(call, c.repeated())
		}
		return e.plan(plan)
	}
	call, err := branch.Call(e.ctx, c.Tool, json.RawMessage(c.Args))
	if err != nil {
		return err
	}
	err = e.callEnded(call, "")
	if h, ok := handleOf(call); ok {
		e.handed(h, c.where())
		// No other process executes the intents that this process has staged.
		return errors.Join(err, catalog.Intents().Settle(e.ctx))
	}
	return err
}

// where returns the flags with which another command finds the intents of this one.
func (c *callCmd) where() string {
	var flags []string
	if c.Dir != "" {
		flags = append(flags, "-C "+c.Dir)
	}
	if c.Intents != "" {
		flags = append(flags, "--intents "+c.Intents)
	} else if c.State != "" {
		flags = append(flags, "--state "+c.State)
	}
	return strings.Join(flags, " ")
}

// handleOf returns the handle that a call returned in place of a result.
func handleOf(call registry.Call) (registry.Handle, bool) {
	if call.Result == nil || call.Result.IsError || call.Result.Structured == nil {
		return registry.Handle{}, false
	}
	var answer struct{ Intent registry.Handle }
	err := json.Unmarshal(call.Result.Structured, &answer)
	if err != nil || answer.Intent.ID == "" || call.Intent != "" && call.Intent != answer.Intent.ID {
		return registry.Handle{}, false // the tool's own result
	}
	return answer.Intent, true
}

// handed prints what to do with a handle.
func (e *env) handed(h registry.Handle, where string) {
	if where != "" {
		where = " " + where
	}
	next := "show"
	if h.State == string(intent.AwaitingApproval) {
		next = "approve"
	}
	fmt.Fprintf(e.stderr, "next: catalogd intents %s %s%s\n", next, h.ID, where)
}

// askExplain says which command shows whether a tool is hidden or does not exist; a call answers both alike. flags
// are those of the principal and the daemon, each after a space.
func askExplain(branch, tool, flags string) string {
	return fmt.Sprintf("`catalogd explain %s %s%s` says whether the catalog has it, and what hides it", branch, tool, flags)
}

func notURL(server string) error {
	return fmt.Errorf("--server is not a URL such as http://127.0.0.1:8420: %q", server)
}

// callEnded prints a call, and for an unknown tool the command that says why, with these flags.
func (e *env) callEnded(call registry.Call, flags string) error {
	out := callOutput{ID: call.ID, Intent: call.Intent, Status: call.Status, Decision: call.Decision, Result: call.Result}
	if call.Err != nil {
		out.Error = &callError{Code: call.Err.Code, Message: call.Err.Msg, Violations: call.Err.Violations, Nearest: call.Err.Nearest}
		if call.Err.Err != nil && call.Err.Code != registry.Timeout && call.Err.Code != registry.Cancelled {
			out.Error.Cause = call.Err.Err.Error()
		}
	}
	if e.json {
		if err := e.printJSON(out); err != nil {
			return err
		}
	} else if call.Err != nil {
		fmt.Fprintf(e.stderr, "%s: %s\n", call.Err.Code, call.Err.Msg)
		if out.Error.Cause != "" {
			fmt.Fprintf(e.stderr, "cause: %s\n", out.Error.Cause)
		}
		if call.Err.Code == registry.UnknownTool && len(call.Err.Nearest) == 0 {
			fmt.Fprintln(e.stderr, askExplain(call.Branch, call.Tool, flags))
		}
	} else if err := e.content(call.Result.Content, call.Result.IsError); err != nil {
		return err
	}
	if call.Status != registry.Succeeded && call.Status != registry.Accepted {
		return errFailed
	}
	return nil
}

// content prints text blocks as text, to stderr if they are an error, and lists the other blocks.
func (e *env) content(blocks []json.RawMessage, isError bool) error {
	w := e.stdout
	if isError {
		w = e.stderr
	}
	for _, raw := range blocks {
		var block struct{ Type, Text, MimeType string }
		if err := json.Unmarshal(raw, &block); err != nil {
			return fmt.Errorf("a content block is not an object: %w", err)
		}
		if block.Type != "text" {
			fmt.Fprintf(w, "[%s %s; --format json shows it]\n", block.Type, block.MimeType)
			continue
		}
		fmt.Fprintln(w, strings.TrimSuffix(block.Text, "\n"))
	}
	return nil
}

func (e *env) plan(p registry.Plan) error {
	if e.json {
		return e.printJSON(p)
	}
	switch p.Kind {
	case "exec":
		for i, arg := range p.Argv {
			fmt.Fprintf(e.stdout, "argv[%d]: %q\n", i, arg)
		}
		fmt.Fprintf(e.stdout, "dir: %s\n", cmp.Or(p.Dir, "a private directory of its own, empty at first; cwd: in the binding names another"))
		for _, v := range p.Env {
			fmt.Fprintf(e.stdout, "env: %s\n", v)
		}
		if p.Stdin != "" {
			fmt.Fprintf(e.stdout, "stdin: %s\n", p.Stdin)
		}
	case "http":
		fmt.Fprintf(e.stdout, "%s %s\n", p.Method, p.URL)
		names := make([]string, 0, len(p.Headers))
		for name := range p.Headers {
			names = append(names, name)
		}
		sort.Strings(names)
		for _, name := range names {
			for _, v := range p.Headers[name] {
				fmt.Fprintf(e.stdout, "%s: %s\n", name, v)
			}
		}
		if p.Body != "" {
			fmt.Fprintf(e.stdout, "\n%s\n", p.Body)
		}
	case "intent":
		fmt.Fprintf(e.stdout, "%s of catalogd itself: %s\n", p.Tool, p.Args)
	case "mcp":
		fmt.Fprintf(e.stdout, "tools/call %s of server %s: %s\n", p.Tool, p.Server, p.Args)
	default:
		fmt.Fprintf(e.stdout, "%s: %s\narguments: %s\n", p.Kind, p.Program, p.Args)
	}
	return nil
}
