package serve

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/contract/dialect"
	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Offers are tools of a branch in the form of one provider, as the HTTP API and `catalogd schema` show them.
type Offers struct {
	Branch     string          `json:"branch"`
	Dialect    dialect.Dialect `json:"dialect"`
	Generation string          `json:"generation"`
	// Tools is what goes into a request to the provider: null where no tools were chosen at all, so that the field is to
	// be left out, and [] for an empty choice.
	Tools []json.RawMessage `json:"tools"`
	// Losses are what the tools' schemas don't say; every call is held to it all the same.
	Losses []Lost `json:"losses"`
	// Fallbacks are the tools that openai-strict offers without strict, with every reason. They are among Tools.
	Fallbacks []Unsaid `json:"fallbacks"`
	// Refused are the tools that the dialect can't say. They are not among Tools.
	Refused []Unsaid `json:"refused"`
	// Upstream says of each tool among Tools that an upstream server runs which of its tools that is.
	Upstream []Remote `json:"upstream,omitempty"`
}

// Remote is a tool of an upstream server, by its names in the catalog and there.
type Remote struct {
	Tool   string `json:"tool"`
	Server string `json:"server"`
	Remote string `json:"remote"`
}

// Lost is one thing that a schema doesn't say.
type Lost struct {
	Tool string `json:"tool"`
	// By is "schema" for what JSON Schema can't say of the CUE arguments, and "dialect" for what the provider's schema
	// leaves out of that.
	By string `json:"by"`
	// In is "args", or "result" for what the schema of the result doesn't say.
	In string `json:"in"`
	// Path leads to it from the arguments or the result; empty for them as a whole.
	Path string `json:"path"`
	// Kind is a kind of docs/arguments.md, or the JSON Schema keyword that the dialect leaves out.
	Kind string `json:"kind"`
	// Narrows: the model can't write all that a call accepts. Else it can write more, which the call refuses.
	Narrows bool   `json:"narrows,omitempty"`
	What    string `json:"what"`
	// Pos is where it is declared.
	Pos problem.Position `json:"pos"`
}

// Unsaid is a tool that a dialect, or strict mode, can't say, with every reason.
type Unsaid struct {
	Tool    string            `json:"tool"`
	Reasons []dialect.Refusal `json:"reasons"`
	Pos     problem.Position  `json:"pos"`
}

// Offer says the chosen tools of a branch's view for a principal in a dialect. The error of a branch that is not there is
// an UnknownBranchError, that of tools which the branch doesn't see a registry.UnknownError.
func (g *Generation) Offer(branch string, p decision.Principal, d dialect.Dialect, chosen registry.Selection) (*Offers, error) {
	path, ok := g.PathFor(branch, p)
	if !ok {
		return nil, g.UnknownBranch(branch)
	}
	entries, err := path.View.Select(chosen)
	if err != nil {
		return nil, err
	}
	o := &Offers{Branch: branch, Dialect: d, Generation: g.ID, Losses: []Lost{}, Fallbacks: []Unsaid{}, Refused: []Unsaid{}}
	if entries != nil {
		o.Tools = []json.RawMessage{}
	}
	for _, e := range entries {
		o.add(d, e.Declared())
	}
	return o, nil
}

func (o *Offers) add(d dialect.Dialect, t *registry.Tool) {
	offer := d.Offer(told(t))
	if offer.Refused != nil {
		o.Refused = append(o.Refused, Unsaid{t.Name, offer.Refused, position(t, offer.Refused[0].Path)})
		return
	}
	o.Tools = append(o.Tools, offer.Tool)
	if offer.Fallback != nil {
		o.Fallbacks = append(o.Fallbacks, Unsaid{t.Name, offer.Fallback, position(t, offer.Fallback[0].Path)})
	}
	if m := t.Binding.MCP; m != nil {
		o.Upstream = append(o.Upstream, Remote{t.Name, m.Server, m.Tool})
	}
	o.Losses = append(o.Losses, unsaid(t, "args", t.Args.Losses)...)
	if d == dialect.MCP && t.Result != nil { // no provider takes a schema of the result
		o.Losses = append(o.Losses, unsaid(t, "result", t.Result.Losses)...)
	}
	for _, l := range offer.Losses {
		o.Losses = append(o.Losses, Lost{t.Name, "dialect", "args", l.Path, l.Keyword, l.Narrows, l.What, position(t, l.Path)})
	}
}

// position is where the argument at a dialect's path is declared, or what is around it.
func position(t *registry.Tool, path string) problem.Position {
	if path == "" || strings.HasPrefix(path, "$defs.") {
		return t.At("args")
	}
	path, _, _ = strings.Cut(path, "[]")
	return t.At("args." + path)
}

// Losses are what the JSON Schemas of a tool's arguments and result can't say, which CUE holds each call to.
func Losses(t *registry.Tool) []Lost {
	lost := unsaid(t, "args", t.Args.Losses)
	if t.Result != nil {
		lost = append(lost, unsaid(t, "result", t.Result.Losses)...)
	}
	return lost
}

func unsaid(t *registry.Tool, in string, losses []contract.Loss) (lost []Lost) {
	for _, l := range losses {
		at := problem.Position{File: l.File, Line: l.Line, Col: l.Col}
		lost = append(lost, Lost{Tool: t.Name, By: "schema", In: in, Path: l.Path, Kind: string(l.Kind), What: l.What, Pos: at})
	}
	return lost
}

// At is the CUE path of the loss in the catalog: tools.greet.args.name.
func (l Lost) At() string {
	at := "tools." + l.Tool + "." + l.In
	if l.Path != "" {
		at += "." + l.Path
	}
	return at
}

// told is what any client is told of a tool.
func told(t *registry.Tool) dialect.Tool {
	l := listTool(t)
	return dialect.Tool{
		Name: l.Name, Title: l.Title, Description: l.Description, Input: l.InputSchema, Output: l.OutputSchema,
		ReadOnly: t.Effect == registry.Read,
	}
}

// Tokens estimates what a tool takes of a model's context (dialect.Tokens).
func Tokens(t *registry.Tool) int { return dialect.Tokens(told(t)) }

// listTools answers GET /branches/{branch}/tools: the tools in a dialect (?dialect=, mcp by default), all of them, those
// of ?tools=a,b (which may be empty), or no list at all (?none=true).
func (f *Front) listTools(w http.ResponseWriter, r *http.Request, c caller, branch string) {
	if !c.opens(branch) || f.named(branch) != nil {
		noBranch(w, branch)
		return
	}
	d, chosen, err := readOffer(r.URL.RawQuery)
	if err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	g, release := f.Pin()
	defer release()
	offers, err := g.Offer(branch, c.principal, d, chosen)
	var unknown *registry.UnknownError
	switch {
	case errors.As(err, &unknown):
		writeJSON(w, http.StatusNotFound, struct {
			Error   string             `json:"error"`
			Unknown []registry.Unknown `json:"unknown"`
		}{err.Error(), unknown.Tools})
	case err != nil:
		noBranch(w, branch) // it was there a moment ago
	default:
		writeJSON(w, http.StatusOK, offers)
	}
}

// readOffer reads the query of a list of tools. What it doesn't know is an error: a misspelt parameter must not choose
// every tool.
func readOffer(raw string) (dialect.Dialect, registry.Selection, error) {
	d, chosen := dialect.MCP, registry.All()
	query, err := url.ParseQuery(raw)
	if err != nil {
		return d, chosen, errors.New("the query can't be read: " + err.Error())
	}
	for name, values := range query {
		switch {
		case len(values) != 1:
			return d, chosen, errors.New("the parameter " + name + " is given more than once")
		case name == "dialect":
			if d, err = dialect.Parse(values[0]); err != nil {
				return d, chosen, err
			}
		case name == "tools":
			chosen = registry.Names(SplitNames(values[0])...)
		case name == "none" && values[0] == "true":
			chosen = registry.None()
		default:
			return d, chosen, errors.New("unknown parameter " + name + "; there are dialect=, tools=NAME,NAME and none=true")
		}
	}
	if query.Has("tools") && query.Has("none") {
		return d, chosen, errors.New("tools= and none=true exclude each other")
	}
	return d, chosen, nil
}

// SplitNames reads a list of names with commas between them; nothing is an empty list.
func SplitNames(list string) []string {
	if list == "" {
		return []string{}
	}
	return strings.Split(list, ",")
}
