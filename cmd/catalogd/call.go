package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"sort"
	"strings"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/contract/dialect"
	"github.com/catalogd/catalogd/registry"
)

type callCmd struct {
	Branch  string `arg:"" help:"The branch to call through."`
	Tool    string `arg:"" help:"The tool to call."`
	Args    string `default:"{}" placeholder:"JSON" help:"The arguments, a JSON object."`
	DryRun  bool   `help:"Print the exact command line, request or program that the call would run, and run nothing."`
	Dialect string `default:"mcp" placeholder:"NAME" help:"The provider's form that the arguments were made by: openai-strict says null for what is left out."`
	Server  string `placeholder:"URL" help:"Ask a running daemon instead of calling in this process, such as http://127.0.0.1:8420."`
	Dir     string `short:"C" default:"." help:"The catalog's root."`
	catalogFlags
}

// callOutput is the JSON form of a call that ended.
type callOutput struct {
	ID       string           `json:"id,omitempty"`
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
	// Cause is what only the operator is told. A daemon keeps it for its log.
	Cause string `json:"cause,omitempty"`
}

func (c *callCmd) Run(e *env) error {
	if err := validJSON(c.Args); err != nil {
		return err
	}
	d, err := dialect.Parse(c.Dialect)
	if err != nil {
		return err
	}
	if c.Server != "" {
		if c.DryRun {
			return errors.New("--dry-run plans in this process; leave out --server")
		}
		base, err := url.Parse(c.Server)
		if err != nil || base.Host == "" {
			return notURL(c.Server)
		}
		if !strings.HasPrefix(strings.TrimSpace(c.Args), "{") {
			return errors.New("--args must be a JSON object of arguments by name") // what was given may hold a secret
		}
		call, err := callRemote(e.ctx, base, c.Branch, d, c.Tool, json.RawMessage(c.Args))
		if err != nil {
			return err
		}
		return e.callEnded(call)
	}
	catalog, err := e.open(c.catalogFlags, c.Dir)
	if err != nil {
		return err
	}
	defer catalog.Close()
	branch := catalog.Branch(c.Branch).In(d)
	if c.DryRun {
		plan, call, err := branch.Plan(e.ctx, c.Tool, json.RawMessage(c.Args))
		if err != nil {
			return err
		}
		if call.Err != nil {
			return e.callEnded(call)
		}
		return e.plan(plan)
	}
	call, err := branch.Call(e.ctx, c.Tool, json.RawMessage(c.Args))
	if err != nil {
		return err
	}
	return e.callEnded(call)
}

// askExplain says who tells the operator whether a tool is hidden or not there, which a call answers alike.
func askExplain(branch, tool string) string {
	return fmt.Sprintf("`catalogd explain %s %s` says whether the catalog has it, and what hides it", branch, tool)
}

// validJSON is nil for JSON, and else says what is wrong with it.
func validJSON(args string) error {
	var v json.RawMessage
	if err := json.Unmarshal([]byte(args), &v); err != nil {
		return fmt.Errorf("--args is not valid JSON: %w", err) // what was given may hold a secret
	}
	return nil
}

func notURL(server string) error {
	return fmt.Errorf("--server is not a URL such as http://127.0.0.1:8420: %q", server)
}

func (e *env) callEnded(call registry.Call) error {
	out := callOutput{ID: call.ID, Status: call.Status, Decision: call.Decision, Result: call.Result}
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
			fmt.Fprintln(e.stderr, askExplain(call.Branch, call.Tool))
		}
	} else if err := e.content(call.Result.Content, call.Result.IsError); err != nil {
		return err
	}
	if call.Status != registry.Succeeded {
		return errFailed
	}
	return nil
}

// content prints text blocks as text, to stderr where they are an error, and names the others.
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
		fmt.Fprintf(e.stdout, "dir: %s\n", p.Dir)
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
	case "mcp":
		fmt.Fprintf(e.stdout, "tools/call %s of server %s: %s\n", p.Tool, p.Server, p.Args)
	default:
		fmt.Fprintf(e.stdout, "%s: %s\narguments: %s\n", p.Kind, p.Program, p.Args)
	}
	return nil
}
