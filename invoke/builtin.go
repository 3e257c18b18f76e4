package invoke

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/intent"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// The names of the built-in tools, by which a caller reads and cancels its own intents. Declarations can't
// use these names.
const (
	IntentGet    = "intent_get"
	IntentList   = "intent_list"
	IntentCancel = "intent_cancel"
)

const (
	// longestGet is the maximum wait of intent_get, below the request timeouts of common clients.
	longestGet = 25 * time.Second
	// mostListed is the maximum number of intents that intent_list returns.
	mostListed = 100
)

// Builtins returns the built-in tools.
var Builtins = sync.OnceValue(func() []*registry.Entry {
	state := make([]string, 0, len(intent.States()))
	for _, s := range intent.States() {
		state = append(state, fmt.Sprintf("%q", s))
	}
	id := contract.Field{Name: "id", Types: []string{"string"}, Required: true}
	const idSchema = `"id":{"type":"string","pattern":"^[0-9a-f]{32}$","description":"The intent's id, as the call was answered with it."}`
	build := &registry.Build{Tools: []registry.Tool{
		builtin(
			IntentGet,
			"get",
			"Returns the state of one of your calls with a side effect, and its result once it has ended. Use this instead of calling the tool again.",
			`{"type":"object","properties":{`+idSchema+`,"wait":{"type":"integer","minimum":0,"maximum":25,"default":0,"description":"How many seconds to wait for its end."}},"required":["id"],"additionalProperties":false}`,
			`{"readOnlyHint":true}`,
			id,
			contract.Field{Name: "wait", Types: []string{"integer"}, Default: json.RawMessage("0")},
		),
		builtin(
			IntentList,
			"list",
			"Lists your calls with side effects through this branch, the newest first.",
			`{"type":"object","properties":{"state":{"type":"string","enum":[`+strings.Join(
				state,
				",",
			)+`],"description":"Only those in this state."},`+
				`"tool":{"type":"string","description":"Only those of this tool."},`+
				`"limit":{"type":"integer","minimum":1,"maximum":100,"default":20,"description":"How many at most."}},"additionalProperties":false}`,
			`{"readOnlyHint":true}`,
			contract.Field{Name: "limit", Types: []string{"integer"}, Default: json.RawMessage("20")},
			contract.Field{
				Name:  "state",
				Types: []string{"string"},
			},
			contract.Field{Name: "tool", Types: []string{"string"}},
		),
		builtin(IntentCancel, "cancel", "Cancels one of your calls with a side effect that has not begun.",
			`{"type":"object","properties":{`+idSchema+`},"required":["id"],"additionalProperties":false}`,
			`{"readOnlyHint":false,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}`, id),
	}}
	r, problems := registry.New(
		build,
		func(registry.Tool) (registry.Bound, problem.List) { return registry.Bound{}, nil },
		nil,
		nil,
	)
	if err := problems.Err(); err != nil {
		panic("invoke: the built-in tools are not valid: " + err.Error())
	}
	return r.Entries()
})

func builtin(name, action, description, schema, hints string, fields ...contract.Field) registry.Tool {
	return registry.Tool{
		Name: name, Description: description, Effect: registry.Read, Timeout: longestGet + 5*time.Second, Annotations: json.RawMessage(hints),
		Binding: registry.Binding{Intent: action}, Source: registry.Source{Digest: name},
		Args: contract.Spec{Schema: json.RawMessage(schema), Strictness: contract.Closed, Fields: fields},
	}
}

// Builtin reports whether a name is that of a built-in tool.
func Builtin(name string) bool {
	return name == IntentGet || name == IntentList || name == IntentCancel
}

// intents runs a built-in tool. It gives access only to the caller's own intents of this branch.
func (p *Path) intents(
	ctx context.Context,
	req Request,
	entry *registry.Entry,
	args contract.Args,
) (*registry.Result, *registry.Error) {
	if p.Effects == nil {
		return nil, noStore(fmt.Sprintf("tool %q is about intents", entry.Name()))
	}
	effector, err := p.Effects.Effector(ctx)
	if err != nil {
		return nil, &registry.Error{
			Code: registry.IntentsUnavailable,
			Msg:  "intents can't be read; the operator's log says why",
			Err:  err,
		}
	}
	who := intent.Person{Name: req.Principal.Name, Credential: req.Credential}
	var in struct {
		ID, State, Tool string
		Wait, Limit     int
	}
	if err := json.Unmarshal(args.JSON(), &in); err != nil {
		return nil, &registry.Error{Code: registry.Internal, Msg: "the arguments can't be read", Err: err}
	}
	branch := p.View.Declared()
	switch entry.Declared().Binding.Intent {
	case "list":
		tool, ok := p.View.Declared().Catalog(in.Tool)
		if !ok {
			tool = noTool
		}
		return p.listIntents(ctx, effector, who, intent.Filter{
			Branch: branch.Name, Session: &branch.Session, Principal: who.Name, Tool: tool, States: states(in.State), Limit: min(in.Limit, mostListed),
		})
	case "cancel":
		found, err := own(effector.Get(ctx, in.ID, who))(branch, who)
		if err == nil {
			found, err = effector.Cancel(ctx, in.ID, who, "")
		}
		if err != nil {
			return nil, unreadable(in.ID, err)
		}
		return p.shown(ctx, req, found)
	}
	found, err := own(effector.Get(ctx, in.ID, who))(branch, who)
	if err == nil {
		found, err = effector.Await(ctx, found, time.Duration(in.Wait)*time.Second)
	}
	if err != nil {
		return nil, unreadable(in.ID, err)
	}
	return p.shown(ctx, req, found)
}

func states(named string) []intent.State {
	if named == "" {
		return nil
	}
	return []intent.State{intent.State(named)}
}

// own passes on an intent if it is the caller's and of this branch; any other becomes ErrUnknown.
func own(in intent.Intent, err error) func(branch *registry.Branch, who intent.Person) (intent.Intent, error) {
	return func(branch *registry.Branch, who intent.Person) (intent.Intent, error) {
		if err == nil && (in.Branch != branch.Name || in.Session != branch.Session || in.Principal != who.Name || in.Credential != who.Credential) {
			err = intent.ErrUnknown
		}
		return in, err
	}
}

// unreadable returns the error for an intent that can't be read or changed.
func unreadable(id string, err error) *registry.Error {
	var state *intent.StateError
	switch {
	case errors.Is(err, intent.ErrUnknown):
		return &registry.Error{
			Code: registry.InvalidArguments,
			Msg: fmt.Sprintf(
				"you have no intent %q in this branch; intent_list lists your intents",
				registry.Shown(id),
			),
		}
	case errors.As(err, &state):
		return &registry.Error{Code: registry.InvalidArguments, Msg: err.Error()}
	}
	return &registry.Error{
		Code: registry.IntentsUnavailable,
		Msg:  "the intent can't be read; the operator's log says why",
		Err:  err,
	}
}

// summary is the form of an intent that its caller sees.
type summary struct {
	ID       string             `json:"id"`
	Tool     string             `json:"tool"`
	State    intent.State       `json:"state"`
	Staged   time.Time          `json:"staged"`
	Ended    time.Time          `json:"ended,omitzero"`
	Expires  time.Time          `json:"expires,omitzero"`
	Attempts int                `json:"attempts"`
	Code     registry.ErrorCode `json:"code,omitempty"`
	Message  string             `json:"message,omitempty"`
}

// noTool is the name of no tool.
const noTool = " "

func summarize(in intent.Intent) summary {
	s := summary{
		ID:       in.ID,
		Tool:     in.Tool,
		State:    in.State,
		Staged:   in.Staged,
		Ended:    in.Ended,
		Attempts: in.Attempts,
		Code:     in.Code,
		Message:  in.Message,
	}
	switch in.State {
	case intent.AwaitingApproval:
		s.Expires, s.Message = in.Expires, approvalMessage(in)
	case intent.Unknown:
		s.Code, s.Message = registry.OutcomeUnknown, strings.TrimSuffix(
			in.Message,
			".",
		)+". The side effect may or may not have happened; don't call again before somebody has checked"
	}
	return s
}

// shown returns an intent with its stored result, after a new result decision.
func (p *Path) shown(ctx context.Context, req Request, in intent.Intent) (*registry.Result, *registry.Error) {
	out := struct {
		summary
		Result *registry.Result `json:"result,omitempty"`
	}{summary: summarize(p.named(in))}
	content := []json.RawMessage{}
	if in.Result != nil || in.ResultBytes > 0 {
		result, err := p.released(ctx, req, in)
		if err != nil {
			out.Code, out.Message = err.Code, err.Msg
		} else {
			out.Result, content = result, result.Content
		}
	}
	line := fmt.Sprintf("intent %s (%s): %s", in.ID, out.Tool, in.State)
	if out.Message != "" {
		line += ": " + out.Message
	}
	structured, err := json.Marshal(out)
	if err != nil {
		return nil, &registry.Error{Code: registry.Internal, Msg: "the intent can't be shown", Err: err}
	}
	return &registry.Result{
		Content:    append([]json.RawMessage{registry.Text(line)}, content...),
		Structured: structured,
	}, nil
}

// released returns the stored result of an intent after a new result decision. It returns an error if the
// caller no longer sees the tool.
func (p *Path) released(ctx context.Context, req Request, in intent.Intent) (*registry.Result, *registry.Error) {
	entry := p.View.Declares(in.Tool)
	if entry == nil {
		return nil, &registry.Error{
			Code: registry.ResultDenied,
			Msg:  "its result is not shown, because this branch no longer shows you the tool",
		}
	}
	args, violations, err := entry.Contract().Recheck(ctx, in.Arguments)
	if err != nil || violations != nil {
		return nil, &registry.Error{
			Code: registry.ResultDenied,
			Msg:  "its result is not shown, because the tool's declaration has changed",
		}
	}
	in = p.named(in)
	call := p.newCall(Request{ID: in.ID, Tool: in.Tool, Principal: req.Principal})
	call.Declared, call.Arguments, call.Intent = entry.Declared().Name, args, in.ID
	return p.stored(ctx, &call, Request{Tool: in.Tool, Principal: req.Principal}, entry, args, in)
}

func (p *Path) listIntents(
	ctx context.Context,
	effector *intent.Effector,
	who intent.Person,
	f intent.Filter,
) (*registry.Result, *registry.Error) {
	all, _, err := effector.Page(ctx, f, who)
	if err != nil {
		return nil, &registry.Error{
			Code: registry.IntentsUnavailable,
			Msg:  "intents can't be read; the operator's log says why",
			Err:  err,
		}
	}
	out := struct {
		Intents []summary `json:"intents"`
	}{[]summary{}}
	lines := make([]string, 0, len(all)+1)
	for _, in := range all {
		in = p.named(in)
		out.Intents = append(out.Intents, summarize(in))
		lines = append(
			lines,
			fmt.Sprintf("%s %s %s %s", in.ID, in.Staged.UTC().Format(time.RFC3339), in.Tool, in.State),
		)
	}
	if len(all) == 0 {
		lines = append(lines, "no intents")
	}
	structured, err := json.Marshal(out)
	if err != nil {
		return nil, &registry.Error{Code: registry.Internal, Msg: "the intents can't be shown", Err: err}
	}
	return &registry.Result{
		Content:    []json.RawMessage{registry.Text(strings.Join(lines, "\n"))},
		Structured: structured,
	}, nil
}
