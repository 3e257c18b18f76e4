package conformance

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	gosdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/catalogd/catalogd/test/internal/harness"
)

// session is what one client does, in this order: it says which revision it speaks, lists, calls, gets a
// structured result, an error of the tool, one about its arguments, one about a tool that is not there, is
// asked by a tool, and after ready hears that the tools changed and lists them again. An answer begins with
// "isError: " where the tool failed, and is "error CODE" where the request did.
type session struct {
	t     *testing.T
	url   string
	steps map[string]string
	// ready has the test change the catalog.
	ready func()
}

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
	fixture := mcpGoServer(t)
	for _, c := range []struct {
		name, revision string
		run            func(*session)
	}{
		{"TypeScript SDK 1", sessionEra, typeScript("1", sessionEra)},
		{"TypeScript SDK 2", sessionEra, typeScript("2", sessionEra)},
		{"TypeScript SDK 2", harness.Modern, typeScript("2", harness.Modern)},
		{"go-sdk", sessionEra, func(s *session) { s.goSDK(sessionEra) }},
		{"go-sdk", harness.Modern, func(s *session) { s.goSDK(harness.Modern) }},
		{"mcp-go", sessionEra, func(s *session) { s.mcpGo(sessionEra) }},
		{"mcp-go", harness.Modern, func(s *session) { s.mcpGo(harness.Modern) }},
	} {
		t.Run(c.name+" of "+c.revision, func(t *testing.T) {
			t.Parallel()
			r := conformanceCatalog(t, fixture.URL, "discover: {}",
				`discover: only: ["test_simple_text", "test_error_handling", "test_elicitation"]`)
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
			s.ready = func() {
				harness.WriteFile(t, filepath.Join(r.Dir, "catalog/added.cue"), `package catalog

tools: added: {
	description: "Says what it is told."
	args: word!: string
	effect: "read"
	binding: jq: program: ".word"
}
`)
				if !r.Settled(t) {
					t.Errorf("the change was refused: %+v", r.Status().Failed)
				}
			}
			c.run(s)
			const before = "test_elicitation test_error_handling test_simple_text typed"
			want := map[string]string{
				"revision":    c.revision,
				"list":        before,
				"call":        "This is a simple text response for testing.",
				"structured":  `{"kind":"short","length":1,"word":"x"}`,
				"error":       "isError: This tool intentionally returns an error for testing",
				"unknown":     "error -32602",
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

// change has the test change the catalog, and waits until the client has heard of it.
func (s *session) change(heard <-chan struct{}) {
	s.ready()
	select {
	case <-heard:
	case <-time.After(harness.Timeout):
		s.t.Fatal("did not hear that the tools changed")
	}
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

func sorted(names []string) string {
	slices.Sort(names)
	return strings.Join(names, " ")
}

func (s *session) goSDK(revision string) {
	ctx, heard := s.t.Context(), make(chan struct{}, 8)
	c := gosdk.NewClient(&gosdk.Implementation{Name: "go-sdk", Version: "1"}, &gosdk.ClientOptions{
		ElicitationHandler: func(context.Context, *gosdk.ElicitRequest) (*gosdk.ElicitResult, error) {
			return &gosdk.ElicitResult{Action: "accept", Content: ada}, nil
		},
		ToolListChangedHandler: func(context.Context, *gosdk.ToolListChangedRequest) { heard <- struct{}{} },
	})
	cs, err := c.Connect(ctx, &gosdk.StreamableClientTransport{Endpoint: s.url},
		&gosdk.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		s.t.Fatal(err)
	}
	defer cs.Close()
	list := func() string {
		result, err := cs.ListTools(ctx, nil)
		if err != nil {
			s.t.Fatal(err)
		}
		var names []string
		for _, tool := range result.Tools {
			names = append(names, tool.Name)
		}
		return sorted(names)
	}
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
		if n.Method == mcp.MethodNotificationToolsListChanged {
			heard <- struct{}{}
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
		stop, err := c.ListenAsync(ctx, mcp.SubscriptionFilter{ToolsListChanged: true}, nil)
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
	s.change(heard)
	s.steps["changed"] = list()
}
