package conformance

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	gosdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/test/internal/harness"
)

// session is what one client does, in this order: it says which revision it speaks, lists tools,
// resources and prompts page by page, asks for a page that is not there, calls, gets a structured result, an error of the tool, one about its arguments, one about
// a tool that is not there, is asked by a tool, hears progress, cancels a call, hears that a resource was
// updated, and after ready hears that the tools changed and lists them again. An answer begins with "isError: "
// where the tool failed, and is "error CODE" where the request did.
type session struct {
	t     *testing.T
	url   string
	steps map[string]string
	// ready has the test change the catalog.
	ready func()
}

// pages make every list one of several pages.
var pages = catalogd.ServingLimits{Page: 2}

// TestClients has the clients that people use list, call, fail, be asked and hear of a change.
func TestClients(t *testing.T) {
	t.Parallel()
	typeScript := func(version, revision string) func(*session) {
		return func(s *session) {
			// It is given longer than any one wait of it.
			ctx, cancel := context.WithTimeout(s.t.Context(), 3*harness.Timeout)
			defer cancel()
			script := filepath.Join(harness.Root(s.t), "testdata/clients/typescript.mjs")
			s.process(exec.CommandContext(ctx, "node", script, version, revision, s.url))
		}
	}
	fixture := newClientFixture(t)
	var clients atomic.Int32
	t.Cleanup(func() { // runs before the fixture's own
		if !t.Failed() {
			harness.Await(t, "each cancelled call has ended at the server", func() bool { return fixture.ended() == int(clients.Load()) })
		}
	})
	for _, c := range []struct {
		name, revision string
		run            func(*session)
		// replicas are two daemons, to which requests go in turn.
		replicas bool
	}{
		{"TypeScript SDK 1", sessionEra, typeScript("1", sessionEra), false},
		{"TypeScript SDK 2", sessionEra, typeScript("2", sessionEra), false},
		{"TypeScript SDK 2", harness.Modern, typeScript("2", harness.Modern), false},
		{"go-sdk", sessionEra, func(s *session) { s.goSDK(sessionEra) }, false},
		{"go-sdk", harness.Modern, func(s *session) { s.goSDK(harness.Modern) }, false},
		{"mcp-go", sessionEra, func(s *session) { s.mcpGo(sessionEra) }, false},
		{"mcp-go", harness.Modern, func(s *session) { s.mcpGo(harness.Modern) }, false},
		{"go-sdk", harness.Modern, func(s *session) { s.goSDK(harness.Modern) }, true},
		{"mcp-go", harness.Modern, func(s *session) { s.mcpGo(harness.Modern) }, true},
	} {
		name := c.name + " of " + c.revision
		if c.replicas {
			name += " at two replicas"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clients.Add(1)
			dir := conformanceDir(t, fixture.URL, "discover: {}",
				`discover: only: ["test_simple_text", "test_error_handling", "test_elicitation", "test_tool_with_progress", "test_waits", "test_touch"]`)
			r := harness.Serve(t, catalogd.Config{Dir: dir, Serving: pages})
			harness.WriteFile(t, filepath.Join(r.Dir, "catalog/typed.cue"), `package catalog

tools: typed: {
	description: "Says what it is told, and how long that is."
	args: word!: string
	result: {word!: string, length!: int & >=0, kind!: "short" | "long"}
	effect: "read"
	binding: jq: program: "{word: .word, length: (.word | length), kind: \"short\"}"
}
`)
			if !r.Settled(t) {
				t.Fatalf("%+v", r.Status().Failed)
			}
			s := &session{t: t, url: r.URL + "/branches/default/mcp", steps: map[string]string{}}
			other := r
			if c.replicas {
				r, other, s.url = replicas(t, r)
			}
			times := 0
			s.ready = func() {
				times++
				harness.WriteFile(t, filepath.Join(r.Dir, "catalog/added.cue"), fmt.Sprintf(`package catalog

tools: added: {
	description: "Says what it is told, version %d."
	args: word!: string
	effect: "read"
	binding: jq: program: ".word"
}
`, times))
				if !r.Settled(t) || !other.Settled(t) {
					t.Errorf("the change was refused: %+v", r.Status().Failed)
				}
			}
			c.run(s)
			const before = "test_elicitation test_error_handling test_simple_text test_tool_with_progress test_touch test_waits typed"
			want := map[string]string{
				"revision":  c.revision,
				"list":      before,
				"resources": "static-binary static-text watched-resource",
				"prompts": "test_input_required_result_prompt test_prompt_with_arguments test_prompt_with_embedded_resource " +
					"test_prompt_with_image test_simple_prompt",
				"call":        "This is a simple text response for testing.",
				"structured":  `{"kind":"short","length":1,"word":"x"}`,
				"error":       "isError: This tool intentionally returns an error for testing",
				"unknown":     "error -32602",
				"page":        "error -32602",
				"progress":    "0 50 100",
				"cancel":      "cancelled",
				"updated":     watched,
				"elicitation": "Elicitation completed: action=accept, content=map[email:ada@example.com username:ada]",
				"changed":     "added " + before,
			}
			refused := s.steps["arguments"]
			if !strings.HasPrefix(refused, "isError: ") || !strings.Contains(refused, "/message") {
				t.Errorf("got %q for a number as message, want an error that names /message", refused)
			}
			delete(s.steps, "arguments")
			if diff := cmp.Diff(want, s.steps); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// process runs a client that prints its steps.
func (s *session) process(cmd *exec.Cmd) {
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var line struct{ Step, Got string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			s.t.Errorf("%v in %s", err, lines.Text())
		}
		if line.Step == "ready" {
			s.ready()
			continue
		}
		s.steps[line.Step] = line.Got
	}
	if err := errors.Join(lines.Err(), cmd.Wait()); err != nil {
		s.t.Error(err)
	}
}

// ask is what the calls of all clients written in Go have in common: each is made by call.
func (s *session) ask(call func(tool string, args map[string]any) string) {
	s.steps["call"] = call("test_simple_text", map[string]any{})
	s.steps["structured"] = call("typed", map[string]any{"word": "x"})
	s.steps["error"] = call("test_error_handling", map[string]any{})
	s.steps["arguments"] = call("test_elicitation", map[string]any{"message": 7})
	s.steps["unknown"] = call("nothing", map[string]any{})
	s.steps["elicitation"] = call("test_elicitation", map[string]any{"message": "Who are you?"})
}

// cancel makes a call that reports progress and runs on, cancels it, and notes whether the call ended by that.
func (s *session) cancel(progress <-chan string, call func(context.Context) error) {
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- call(ctx) }()
	select {
	case <-progress:
	case err := <-done:
		s.t.Fatalf("the call ended before it was cancelled: %v", err)
	case <-time.After(harness.Timeout):
		s.t.Fatal("heard no progress")
	}
	cancel()
	if err := <-done; errors.Is(err, context.Canceled) {
		s.steps["cancel"] = "cancelled"
	} else {
		s.steps["cancel"] = fmt.Sprint(err)
	}
}

// progress collects what a call reports.
func (s *session) progress(progress <-chan string, call func(context.Context) error) {
	if err := call(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	var all []string
	for range 3 {
		select {
		case p := <-progress:
			all = append(all, p)
		case <-time.After(harness.Timeout):
			s.t.Fatalf("heard only %q", all)
		}
	}
	s.steps["progress"] = strings.Join(all, " ")
}

// touch updates the resource until the client has heard of it: a stream that has only just been asked for may not be there.
func (s *session) touch(updated <-chan string, touch func() error) {
	harness.Await(s.t, "the resource was updated", func() bool {
		if err := touch(); err != nil {
			s.t.Fatal(err)
		}
		select {
		case s.steps["updated"] = <-updated:
			return true
		case <-time.After(100 * time.Millisecond):
			return false
		}
	})
}

// change has the test change the catalog until the client has heard of it: a stream that has only just been asked for
// may not be there.
func (s *session) change(heard <-chan struct{}) {
	harness.Await(s.t, "the client has heard that the tools changed", func() bool {
		s.ready()
		select {
		case <-heard:
			return true
		case <-time.After(time.Second):
			return false
		}
	})
}

var ada = map[string]any{"username": "ada", "email": "ada@example.com"}

// answerOf is an answer of a tool: its structured content, or its text.
func answerOf(isError bool, structured any, text string) string {
	if structured != nil {
		raw, err := json.Marshal(structured)
		if err != nil {
			return err.Error()
		}
		text = string(raw)
	}
	if isError {
		return "isError: " + text
	}
	return text
}

// named returns the names of what go-sdk lists, over all pages.
func named[T any](s *session, listed iter.Seq2[T, error], name func(T) string) string {
	var names []string
	for item, err := range listed {
		if err != nil {
			s.t.Fatal(err)
		}
		names = append(names, name(item))
	}
	return sorted(names)
}

func sorted(names []string) string {
	slices.Sort(names)
	return strings.Join(names, " ")
}

func (s *session) goSDK(revision string) {
	ctx, heard := s.t.Context(), make(chan struct{}, 8)
	progress, updated := make(chan string, 8), make(chan string, 100)
	c := gosdk.NewClient(&gosdk.Implementation{Name: "go-sdk", Version: "1"}, &gosdk.ClientOptions{
		ElicitationHandler: func(context.Context, *gosdk.ElicitRequest) (*gosdk.ElicitResult, error) {
			return &gosdk.ElicitResult{Action: "accept", Content: ada}, nil
		},
		ToolListChangedHandler: func(context.Context, *gosdk.ToolListChangedRequest) { heard <- struct{}{} },
		ProgressNotificationHandler: func(_ context.Context, n *gosdk.ProgressNotificationClientRequest) {
			progress <- fmt.Sprint(n.Params.Progress)
		},
		ResourceUpdatedHandler: func(_ context.Context, n *gosdk.ResourceUpdatedNotificationRequest) { updated <- n.Params.URI },
	})
	cs, err := c.Connect(ctx, &gosdk.StreamableClientTransport{Endpoint: s.url},
		&gosdk.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		s.t.Fatal(err)
	}
	defer cs.Close()
	list := func() string { return named(s, cs.Tools(ctx, nil), func(t *gosdk.Tool) string { return t.Name }) }
	s.steps["resources"] = named(s, cs.Resources(ctx, nil), func(r *gosdk.Resource) string { return r.Name })
	s.steps["prompts"] = named(s, cs.Prompts(ctx, nil), func(p *gosdk.Prompt) string { return p.Name })
	s.steps["revision"], s.steps["list"] = cs.InitializeResult().ProtocolVersion, list()
	s.ask(func(tool string, args map[string]any) string {
		result, err := cs.CallTool(ctx, &gosdk.CallToolParams{Name: tool, Arguments: args})
		var wire *jsonrpc.Error
		switch {
		case errors.As(err, &wire):
			return fmt.Sprintf("error %d", wire.Code)
		case err != nil:
			return err.Error()
		}
		text, _ := result.Content[0].(*gosdk.TextContent)
		return answerOf(result.IsError, result.StructuredContent, text.Text)
	})
	_, err = cs.ListTools(ctx, &gosdk.ListToolsParams{Cursor: "x"})
	var wire *jsonrpc.Error
	if errors.As(err, &wire) {
		s.steps["page"] = fmt.Sprintf("error %d", wire.Code)
	}
	reporting := func(tool string) func(context.Context) error {
		return func(ctx context.Context) error {
			params := &gosdk.CallToolParams{Name: tool, Arguments: map[string]any{}}
			params.SetProgressToken(tool)
			_, err := cs.CallTool(ctx, params)
			return err
		}
	}
	s.progress(progress, reporting("test_tool_with_progress"))
	s.cancel(progress, reporting(waitingTool))
	if err := cs.Subscribe(ctx, &gosdk.SubscribeParams{URI: watched}); err != nil {
		s.t.Fatal(err)
	}
	s.touch(updated, func() error {
		_, err := cs.CallTool(ctx, &gosdk.CallToolParams{Name: "test_touch", Arguments: map[string]any{}})
		return err
	})
	s.change(heard)
	s.steps["changed"] = list()
}

// accepting answers what a tool asks.
type accepting struct{}

func (accepting) Elicit(context.Context, mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	accepted := mcp.ElicitationResponse{Action: mcp.ElicitationResponseActionAccept, Content: ada}
	return &mcp.ElicitationResult{ElicitationResponse: accepted}, nil
}

func (s *session) mcpGo(revision string) {
	ctx, heard := s.t.Context(), make(chan struct{}, 8)
	progress, updated := make(chan string, 8), make(chan string, 100)
	var options []transport.StreamableHTTPCOption
	if revision != harness.Modern {
		//lint:ignore SA1019 the older eras are what is tested
		options = append(options, transport.WithContinuousListening())
	}
	tr, err := transport.NewStreamableHTTP(s.url, options...)
	if err != nil {
		s.t.Fatal(err)
	}
	c := client.NewClient(tr, client.WithProtocolVersion(revision), client.WithElicitationHandler(accepting{}))
	defer c.Close()
	c.OnNotification(func(n mcp.JSONRPCNotification) {
		switch n.Method {
		case mcp.MethodNotificationToolsListChanged:
			heard <- struct{}{}
		case "notifications/progress":
			progress <- fmt.Sprint(n.Params.AdditionalFields["progress"])
		case mcp.MethodNotificationResourceUpdated:
			uri, _ := n.Params.AdditionalFields["uri"].(string)
			updated <- uri
		}
	})
	if err := c.Start(ctx); err != nil {
		s.t.Fatal(err)
	}
	params := mcp.InitializeParams{ProtocolVersion: revision, ClientInfo: mcp.Implementation{Name: "mcp-go", Version: "1"}}
	if _, err := c.Initialize(ctx, mcp.InitializeRequest{Params: params}); err != nil {
		s.t.Fatal(err)
	}
	if revision == harness.Modern {
		stop, err := c.ListenAsync(ctx, mcp.SubscriptionFilter{ToolsListChanged: true, ResourceSubscriptions: []string{watched}}, nil)
		if err != nil {
			s.t.Fatal(err)
		}
		defer stop()
	}
	list := func() string {
		result, err := c.ListTools(ctx, mcp.ListToolsRequest{})
		if err != nil {
			s.t.Fatal(err)
		}
		var names []string
		for _, tool := range result.Tools {
			names = append(names, tool.Name)
		}
		return sorted(names)
	}
	s.steps["revision"], s.steps["list"] = c.ProtocolVersion(), list()
	resources, err := c.ListResources(ctx, mcp.ListResourcesRequest{})
	if err != nil {
		s.t.Fatal(err)
	}
	prompts, err := c.ListPrompts(ctx, mcp.ListPromptsRequest{})
	if err != nil {
		s.t.Fatal(err)
	}
	var resourceNames, promptNames []string
	for _, r := range resources.Resources {
		resourceNames = append(resourceNames, r.Name)
	}
	for _, p := range prompts.Prompts {
		promptNames = append(promptNames, p.Name)
	}
	s.steps["resources"], s.steps["prompts"] = sorted(resourceNames), sorted(promptNames)
	s.ask(func(tool string, args map[string]any) string {
		result, err := c.CallTool(ctx, mcp.CallToolRequest{Params: mcp.CallToolParams{Name: tool, Arguments: args}})
		switch {
		case errors.Is(err, mcp.ErrInvalidParams):
			return fmt.Sprintf("error %d", mcp.INVALID_PARAMS)
		case err != nil:
			return err.Error()
		}
		return answerOf(result.IsError, result.StructuredContent, harness.Text(result))
	})
	page := mcp.ListToolsRequest{}
	page.Params.Cursor = "x"
	if _, err := c.ListToolsByPage(ctx, page); errors.Is(err, mcp.ErrInvalidParams) {
		s.steps["page"] = fmt.Sprintf("error %d", mcp.INVALID_PARAMS)
	}
	reporting := func(tool string) func(context.Context) error {
		return func(ctx context.Context) error {
			params := mcp.CallToolParams{Name: tool, Meta: &mcp.Meta{ProgressToken: tool}}
			_, err := c.CallTool(ctx, mcp.CallToolRequest{Params: params})
			return err
		}
	}
	s.progress(progress, reporting("test_tool_with_progress"))
	s.cancel(progress, reporting(waitingTool))
	if revision != harness.Modern {
		//lint:ignore SA1019 the older eras are what is tested
		if err := c.Subscribe(ctx, mcp.SubscribeRequest{Params: mcp.SubscribeParams{URI: watched}}); err != nil {
			s.t.Fatal(err)
		}
	}
	s.touch(updated, func() error {
		_, err := c.CallTool(ctx, mcp.CallToolRequest{Params: mcp.CallToolParams{Name: "test_touch"}})
		return err
	})
	s.change(heard)
	s.steps["changed"] = list()
}
