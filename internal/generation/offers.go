package generation

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/contract/dialect"
	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Offers are tools of a branch in the format of one provider, as the HTTP API and `catalogd schema` show
// them.
type Offers struct {
	// Branch is the name of the branch.
	Branch string `json:"branch"`
	// Dialect is the form of the tools.
	Dialect dialect.Dialect `json:"dialect"`
	// Generation is the id of the generation that offers them.
	Generation string `json:"generation"`
	// Tools is the value for the request to the provider: null if no selection was made and the field is to
	// be omitted, and [] for an empty selection.
	Tools []json.RawMessage `json:"tools"`
	// Losses are the constraints that the tools' schemas don't express; every call is still checked against
	// them.
	Losses []Lost `json:"losses"`
	// Fallbacks are the tools that openai-strict offers without strict mode, with every reason. They are
	// among Tools.
	Fallbacks []DialectIssue `json:"fallbacks"`
	// Refused are the tools that the dialect can't express. They are not among Tools.
	Refused []DialectIssue `json:"refused"`
	// Upstream maps each tool among Tools that an upstream server runs to its name on the server.
	Upstream []Remote `json:"upstream,omitempty"`
}

// DeclaredTool is what the catalog declares of a tool that a branch shows, beside what clients are shown.
type DeclaredTool struct {
	// Tool is the tool's name on the branch.
	Tool string `json:"tool"`
	// Effect is read or write.
	Effect registry.Effect `json:"effect"`
	// Binding is how it is executed: exec, http, mcp, jq, func, or intent for catalogd's own. This and the rest are
	// for admins, and empty for others.
	Binding string `json:"binding,omitempty"`
	// Tags are its tags, and Deprecated says what to use instead.
	Tags       []string `json:"tags,omitempty"`
	Deprecated string   `json:"deprecated,omitempty"`
	// Pos is where the tool is declared; unset for catalogd's own.
	Pos problem.Position `json:"pos,omitzero"`
}

// Remote is a tool of an upstream server, by its names in the catalog and on the server.
type Remote struct {
	// Tool is the tool's name on the branch.
	Tool string `json:"tool"`
	// Server is the server's name in the catalog.
	Server string `json:"server"`
	// Remote is the tool's name on the server.
	Remote string `json:"remote"`
}

// Lost is one constraint that a schema doesn't express.
type Lost struct {
	// Tool is the tool's name on the branch.
	Tool string `json:"tool"`
	// By is "schema" for what JSON Schema can't express of the CUE arguments, and "dialect" for what the
	// provider's schema leaves out of that.
	By string `json:"by"`
	// In is "args" or "result".
	In string `json:"in"`
	// Path is its path in the arguments or the result; empty for the whole.
	Path string `json:"path"`
	// Kind is a kind of docs/arguments.md, or the JSON Schema keyword that the dialect leaves out.
	Kind string `json:"kind"`
	// Narrows: the model can't write everything that a call accepts. Otherwise it can write more, which the
	// call refuses.
	Narrows bool `json:"narrows,omitempty"`
	// What is the constraint in words.
	What string `json:"what"`
	// Pos is where the constraint is declared.
	Pos problem.Position `json:"pos"`
}

// DialectIssue is a tool that a dialect, or strict mode, can't express, with every reason.
type DialectIssue struct {
	// Tool is the tool's name on the branch.
	Tool string `json:"tool"`
	// Reasons say what the dialect can't express.
	Reasons []dialect.Refusal `json:"reasons"`
	// Pos is where the tool is declared.
	Pos problem.Position `json:"pos"`
}

// Offer returns the selected tools of a branch's view for a principal in a dialect. The error is an
// UnknownBranchError if the branch doesn't exist, and a registry.UnknownError if the branch doesn't show a
// selected tool.
func (g *Generation) Offer(branch string, p decision.Principal, d dialect.Dialect, chosen registry.Selection) (*Offers, error) {
	path, ok := g.PathFor(branch, p)
	if !ok {
		return nil, g.UnknownBranchOf(branch, p)
	}
	entries, err := path.View.Select(chosen)
	if err != nil {
		return nil, err
	}
	o := &Offers{Branch: branch, Dialect: d, Generation: g.ID, Losses: []Lost{}, Fallbacks: []DialectIssue{}, Refused: []DialectIssue{}}
	if entries != nil {
		o.Tools = []json.RawMessage{}
	}
	for _, e := range entries {
		o.add(d, e)
	}
	return o, nil
}

// Declared returns what the catalog declares of the selected tools of a branch's view for a principal, with the
// errors of Offer.
func (g *Generation) Declared(branch string, p decision.Principal, chosen registry.Selection) ([]DeclaredTool, error) {
	path, ok := g.PathFor(branch, p)
	if !ok {
		return nil, g.UnknownBranch(branch)
	}
	entries, err := path.View.Select(chosen)
	if err != nil {
		return nil, err
	}
	declared := make([]DeclaredTool, 0, len(entries))
	for _, e := range entries {
		t := e.Declared()
		declared = append(declared, DeclaredTool{
			Tool: e.Name(), Effect: t.Effect, Binding: t.Binding.Kind(), Tags: slices.Clone(t.Tags), Deprecated: t.Deprecated,
			Pos: t.Pos,
		})
	}
	return declared, nil
}

func (o *Offers) add(d dialect.Dialect, e *registry.Entry) {
	t := e.Declared()
	offer := d.Offer(dialectTool(e))
	if offer.Refused != nil {
		o.Refused = append(o.Refused, DialectIssue{e.Name(), offer.Refused, position(t, offer.Refused[0].Path)})
		return
	}
	o.Tools = append(o.Tools, offer.Tool)
	if offer.Fallback != nil {
		o.Fallbacks = append(o.Fallbacks, DialectIssue{e.Name(), offer.Fallback, position(t, offer.Fallback[0].Path)})
	}
	if m := t.Binding.MCP; m != nil {
		o.Upstream = append(o.Upstream, Remote{e.Name(), m.Server, m.Tool})
	}
	o.Losses = append(o.Losses, dialectIssues(e.Name(), "args", t.Args.Losses)...)
	if d == dialect.MCP && t.Result != nil { // no provider accepts a schema of the result
		o.Losses = append(o.Losses, dialectIssues(e.Name(), "result", t.Result.Losses)...)
	}
	for _, l := range offer.Losses {
		o.Losses = append(o.Losses, Lost{e.Name(), "dialect", "args", l.Path, l.Keyword, l.Narrows, l.What, position(t, l.Path)})
	}
}

// position returns where the argument at a dialect's path is declared, or its closest declared parent.
func position(t *registry.Tool, path string) problem.Position {
	if path == "" || strings.HasPrefix(path, "$defs.") {
		return t.At("args")
	}
	path, _, _ = strings.Cut(path, "[]")
	return t.At("args." + path)
}

// Losses returns the constraints that the JSON Schemas of a tool's arguments and result can't express; CUE
// checks them at each call.
func Losses(t *registry.Tool) []Lost {
	lost := dialectIssues(t.Name, "args", t.Args.Losses)
	if t.Result != nil {
		lost = append(lost, dialectIssues(t.Name, "result", t.Result.Losses)...)
	}
	return lost
}

func dialectIssues(tool, in string, losses []contract.Loss) (lost []Lost) {
	for _, l := range losses {
		at := problem.Position{File: l.File, Line: l.Line, Col: l.Col}
		lost = append(lost, Lost{Tool: tool, By: "schema", In: in, Path: l.Path, Kind: string(l.Kind), What: l.What, Pos: at})
	}
	return lost
}

// At returns the CUE path of the loss in the catalog: tools.greet.args.name.
func (l Lost) At() string {
	at := "tools." + l.Tool + "." + l.In
	if l.Path != "" {
		at += "." + l.Path
	}
	return at
}

// dialectTool returns what a client sees of a tool.
func dialectTool(e *registry.Entry) dialect.Tool {
	l := ListTool(e)
	return dialect.Tool{
		Name: l.Name, Title: l.Title, Description: l.Description, Input: l.InputSchema, Output: l.OutputSchema,
		ReadOnly: e.Effect() == registry.Read, Idempotent: e.Declared().Idempotent,
	}
}

// Tokens estimates how many tokens of a model's context a tool takes (dialect.Tokens).
func Tokens(t *registry.Tool) int {
	return dialect.Tokens(dialect.Tool{Name: t.Name, Description: described(t), Input: t.Args.Schema})
}

// SplitNames splits a comma-separated list of names; an empty string is an empty list.
func SplitNames(list string) []string {
	if list == "" {
		return []string{}
	}
	return strings.Split(list, ",")
}
