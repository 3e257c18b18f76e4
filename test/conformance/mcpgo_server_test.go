package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// This is the server that the conformance suite wants to test: its tools, resources and prompts have the names and say the
// words that the scenarios ask for. Much of it follows mcp-go's examples/conformance (MIT, Mark III Labs).

const (
	onePixel  = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
	noSound   = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
	stateSeal = "sealed:"
)

// mcpGoServer serves the fixture over HTTP until the test ends.
func mcpGoServer(t *testing.T) *httptest.Server {
	t.Helper()
	s := server.NewMCPServer("conformance", "1.0.0",
		server.WithToolCapabilities(true), server.WithResourceCapabilities(true, true), server.WithPromptCapabilities(true),
		server.WithCompletions(), server.WithLogging(), server.WithElicitation())
	s.EnableSampling()
	addContentTools(s)
	addAskingTools(s)
	addInputTools(s)
	addConformanceResources(s)
	addConformancePrompts(s)
	h := httptest.NewServer(speaking(server.NewStreamableHTTPServer(s,
		server.WithStateful(true), server.WithEventStore(server.NewInMemoryEventStore()))))
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
	})
	return h
}

func addTool(s *server.MCPServer, name, description string, h server.ToolHandlerFunc, options ...mcp.ToolOption) {
	s.AddTool(mcp.NewTool(name, append(options, mcp.WithDescription(description), mcp.WithReadOnlyHintAnnotation(true))...), h)
}

func content(blocks ...mcp.Content) server.ToolHandlerFunc {
	return func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: blocks}, nil
	}
}

func addContentTools(s *server.MCPServer) {
	embedded := func(uri, kind, text string) mcp.Content {
		return mcp.NewEmbeddedResource(mcp.TextResourceContents{URI: uri, MIMEType: kind, Text: text})
	}
	addTool(s, "test_simple_text", "Returns text.", content(mcp.NewTextContent("This is a simple text response for testing.")))
	addTool(s, "test_image_content", "Returns an image.", content(mcp.NewImageContent(onePixel, "image/png")))
	addTool(s, "test_audio_content", "Returns audio.", content(mcp.NewAudioContent(noSound, "audio/wav")))
	addTool(s, "test_embedded_resource", "Returns a resource.",
		content(embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")))
	addTool(s, "test_multiple_content_types", "Returns text, an image and a resource.", content(
		mcp.NewTextContent("Multiple content types test:"), mcp.NewImageContent(onePixel, "image/png"),
		embedded("test://mixed-content-resource", "application/json", `{"test":"data","value":123}`)))
	addTool(s, "test_error_handling", "Returns an error.", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultError("This tool intentionally returns an error for testing"), nil
	})
	// speaking answers the calls of these.
	for _, name := range []string{"test_tool_with_logging", "test_tool_with_progress", "test_logging_tool"} {
		addTool(s, name, "Says something while it runs.", content(mcp.NewTextContent("done")))
	}
	// clientFixture answers the calls of the first, and does what the second is for.
	for _, name := range []string{waitingTool, "test_touch"} {
		addTool(s, name, "Is for clients.", content(mcp.NewTextContent("done")))
	}
	addTool(s, "test_reconnection", "Closes its stream while it runs.", content(mcp.NewTextContent("Reconnection test completed")))
	mirrored := func(p map[string]any) { p["x-mcp-header"] = "Region" }
	addTool(s, "test_headers", "Has an argument that is mirrored in a header.", content(mcp.NewTextContent("done")), mcp.WithString("region", mirrored))
	schema := mcp.NewToolWithRawSchema("json_schema_2020_12_tool", "Tool with JSON Schema 2020-12 features", json.RawMessage(schema2020))
	readOnly := true
	schema.Annotations.ReadOnlyHint = &readOnly
	s.AddTool(schema, content(mcp.NewTextContent("done")))
}

const schema2020 = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
"$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},
"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},"contactMethod":{"type":"string","enum":["phone","email"]},
"phone":{"type":"string"},"email":{"type":"string"}},
"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],
"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},"then":{"required":["phone"]},"else":{"required":["email"]},
"additionalProperties":false}`

// addAskingTools are those that ask the client in every era: by a result in 2026-07-28, of which mcp-go makes requests for
// clients of the older ones.
func addAskingTools(s *server.MCPServer) {
	asks := func(name, description string, ask func(mcp.CallToolRequest, *server.InputRequestBuilder), answer func(json.RawMessage) string, options ...mcp.ToolOption) {
		addTool(s, name, description, func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			given, ok := server.InputResponse(r.Params.InputResponses, "answer")
			if !ok {
				b := server.NewInputRequestBuilder("")
				ask(r, b)
				return b.ToolResult(), nil
			}
			said, err := json.Marshal(given)
			return mcp.NewToolResultText(answer(said)), err
		}, options...)
	}
	asks("test_sampling", "Asks the client's model.", func(r mcp.CallToolRequest, b *server.InputRequestBuilder) {
		b.Sample("answer", mcp.CreateMessageParams{MaxTokens: 100, Messages: []mcp.SamplingMessage{
			{Role: mcp.RoleUser, Content: mcp.NewTextContent(r.GetString("prompt", ""))}}})
	}, func(said json.RawMessage) string { return "LLM response: " + string(said) }, mcp.WithString("prompt", mcp.Required()))
	elicit := func(name, message string, properties map[string]any, options ...mcp.ToolOption) {
		asks(name, "Asks the user.", func(r mcp.CallToolRequest, b *server.InputRequestBuilder) {
			b.Elicit("answer", mcp.ElicitationParams{Message: r.GetString("message", message),
				RequestedSchema: map[string]any{"type": "object", "properties": properties}})
		}, func(said json.RawMessage) string {
			var got mcp.ElicitationResult
			if err := json.Unmarshal(said, &got); err != nil {
				return err.Error()
			}
			return fmt.Sprintf("Elicitation completed: action=%s, content=%v", got.Action, got.Content)
		}, options...)
	}
	text := func(more map[string]any) map[string]any {
		more["type"] = "string"
		return more
	}
	named := func(value, title string) map[string]any { return map[string]any{"const": value, "title": title} }
	elicit("test_elicitation", "", map[string]any{"username": text(map[string]any{}), "email": text(map[string]any{})},
		mcp.WithString("message", mcp.Required()))
	elicit("test_elicitation_sep1034_defaults", "Provide your information", map[string]any{
		"name": text(map[string]any{"default": "John Doe"}), "age": map[string]any{"type": "integer", "default": 30},
		"score":    map[string]any{"type": "number", "default": 95.5},
		"status":   text(map[string]any{"enum": []string{"active", "inactive", "pending"}, "default": "active"}),
		"verified": map[string]any{"type": "boolean", "default": true},
	})
	elicit("test_elicitation_sep1330_enums", "Select options", map[string]any{
		"untitledSingle": text(map[string]any{"enum": []string{"option1", "option2"}}),
		"titledSingle":   text(map[string]any{"oneOf": []any{named("value1", "Value One"), named("value2", "Value Two")}}),
		"legacyEnum":     text(map[string]any{"enum": []string{"opt1", "opt2"}, "enumNames": []string{"Option One", "Option Two"}}),
		"untitledMulti":  map[string]any{"type": "array", "items": text(map[string]any{"enum": []string{"option1", "option2"}})},
		"titledMulti":    map[string]any{"type": "array", "items": map[string]any{"anyOf": []any{named("value1", "Value One"), named("value2", "Value Two")}}},
	})
}

// form is what 2026-07-28 asks the user for one field.
func form(message, field, kind string) mcp.ElicitationParams {
	return mcp.ElicitationParams{Message: message, RequestedSchema: map[string]any{
		"type": "object", "properties": map[string]any{field: map[string]any{"type": kind}}, "required": []string{field},
	}}
}

// addInputTools are those that ask in 2026-07-28, by a result that is no answer yet.
func addInputTools(s *server.MCPServer) {
	greeting := mcp.CreateMessageParams{MaxTokens: 50, Messages: []mcp.SamplingMessage{
		{Role: mcp.RoleUser, Content: mcp.NewTextContent("Generate a greeting")}}}
	once := func(name, id, state string, ask func(*server.InputRequestBuilder), answer string) {
		addTool(s, "test_input_required_result_"+name, "Asks before it answers.", func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if r.Params.RequestState != "" && r.Params.RequestState != state {
				return nil, errors.New("the state is not ours")
			}
			given, ok := server.InputResponse(r.Params.InputResponses, id)
			if !ok {
				b := server.NewInputRequestBuilder(state)
				ask(b)
				return b.ToolResult(), nil
			}
			said, err := json.Marshal(given)
			return mcp.NewToolResultText(answer + string(said)), err
		})
	}
	name := func(b *server.InputRequestBuilder) {
		b.Elicit("user_name", form("What is your name?", "name", "string"))
	}
	confirm := func(b *server.InputRequestBuilder) { b.Elicit("confirm", form("Please confirm", "ok", "boolean")) }
	once("elicitation", "user_name", "", name, "Hello, ")
	once("sampling", "capital_question", "", func(b *server.InputRequestBuilder) { b.Sample("capital_question", greeting) }, "It says ")
	once("list_roots", "client_roots", "", func(b *server.InputRequestBuilder) { b.Roots("client_roots") }, "Roots: ")
	once("request_state", "confirm", stateSeal+"1", confirm, "state-ok ")
	once("tampered_state", "confirm", stateSeal+"2", confirm, "state-ok ")
	once("multiple_inputs", "user_name", stateSeal+"3", func(b *server.InputRequestBuilder) {
		name(b)
		b.Sample("greeting", greeting)
		b.Roots("client_roots")
	}, "All: ")
	addTool(s, "test_input_required_result_multi_round", "Asks twice.", func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if _, ok := server.InputResponse(r.Params.InputResponses, "step2"); ok && r.Params.RequestState == "round-2" {
			return mcp.NewToolResultText("done"), nil
		}
		if _, ok := server.InputResponse(r.Params.InputResponses, "step1"); ok {
			return server.NewInputRequestBuilder("round-2").Elicit("step2", form("Step 2: What is your favorite color?", "color", "string")).ToolResult(), nil
		}
		return server.NewInputRequestBuilder("round-1").Elicit("step1", form("Step 1: What is your name?", "name", "string")).ToolResult(), nil
	})
	once("capabilities", "greeting", "", func(b *server.InputRequestBuilder) { b.Sample("greeting", greeting) }, "It says ")
	addTool(s, "test_streaming_elicitation", "Asks on its stream.", func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return server.NewInputRequestBuilder("").Elicit("user_name", form("What is your name?", "name", "string")).ToolResult(), nil
	})
}

func addConformanceResources(s *server.MCPServer) {
	static := func(uri, name, kind string, r mcp.ResourceContents) {
		s.AddResource(mcp.NewResource(uri, name, mcp.WithResourceDescription("A resource of the suite."), mcp.WithMIMEType(kind)),
			func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
				return []mcp.ResourceContents{r}, nil
			})
	}
	const text = "This is the content of the static text resource."
	static("test://static-text", "static-text", "text/plain", mcp.TextResourceContents{URI: "test://static-text", MIMEType: "text/plain", Text: text})
	static("test://static-binary", "static-binary", "image/png", mcp.BlobResourceContents{URI: "test://static-binary", MIMEType: "image/png", Blob: onePixel})
	static("test://watched-resource", "watched-resource", "text/plain", mcp.TextResourceContents{URI: "test://watched-resource", MIMEType: "text/plain", Text: text})
	s.AddResourceTemplate(mcp.NewResourceTemplate("test://template/{id}/data", "template",
		mcp.WithTemplateDescription("A template of the suite."), mcp.WithTemplateMIMEType("application/json")),
		func(_ context.Context, r mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			id := strings.TrimSuffix(strings.TrimPrefix(r.Params.URI, "test://template/"), "/data")
			return []mcp.ResourceContents{mcp.TextResourceContents{URI: r.Params.URI, MIMEType: "application/json",
				Text: fmt.Sprintf(`{"id":%q,"templateTest":true,"data":%q}`, id, "Data for ID: "+id)}}, nil
		})
}

func addConformancePrompts(s *server.MCPServer) {
	says := func(name string, messages func(map[string]string) []mcp.Content, options ...mcp.PromptOption) {
		s.AddPrompt(mcp.NewPrompt(name, append(options, mcp.WithPromptDescription("A prompt of the suite."))...),
			func(_ context.Context, r mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
				result := &mcp.GetPromptResult{}
				for _, block := range messages(r.Params.Arguments) {
					result.Messages = append(result.Messages, mcp.PromptMessage{Role: mcp.RoleUser, Content: block})
				}
				return result, nil
			})
	}
	argument := func(name string) mcp.PromptOption {
		return mcp.WithArgument(name, mcp.ArgumentDescription("An argument."), mcp.RequiredArgument())
	}
	says("test_simple_prompt", func(map[string]string) []mcp.Content {
		return []mcp.Content{mcp.NewTextContent("This is a simple prompt for testing.")}
	})
	says("test_prompt_with_arguments", func(a map[string]string) []mcp.Content {
		return []mcp.Content{mcp.NewTextContent(fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", a["arg1"], a["arg2"]))}
	}, argument("arg1"), argument("arg2"))
	says("test_prompt_with_embedded_resource", func(a map[string]string) []mcp.Content {
		return []mcp.Content{mcp.NewEmbeddedResource(mcp.TextResourceContents{URI: a["resourceUri"], MIMEType: "text/plain",
			Text: "Embedded resource content for testing."}), mcp.NewTextContent("Please process the embedded resource above.")}
	}, argument("resourceUri"))
	says("test_prompt_with_image", func(map[string]string) []mcp.Content {
		return []mcp.Content{mcp.NewImageContent(onePixel, "image/png"), mcp.NewTextContent("Please analyze the image above.")}
	})
	s.AddPrompt(mcp.NewPrompt("test_input_required_result_prompt", mcp.WithPromptDescription("A prompt that asks.")),
		func(_ context.Context, r mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			if _, ok := server.InputResponse(r.Params.InputResponses, "user_context"); !ok {
				return server.NewInputRequestBuilder("").Elicit("user_context", form("What context should the prompt use?", "context", "string")).PromptResult(), nil
			}
			return &mcp.GetPromptResult{Messages: []mcp.PromptMessage{{Role: mcp.RoleUser, Content: mcp.NewTextContent("with context")}}}, nil
		})
}

// speaking answers the calls of tools that say something while they run. mcp-go loses notifications that come just before
// the result (mark3labs/mcp-go#969), and a scenario that fails at random directly proves nothing of what passes through.
func speaking(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Name string
				Meta map[string]json.RawMessage `json:"_meta"`
			}
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if err != nil || json.Unmarshal(body, &m) != nil || m.Method != string(mcp.MethodToolsCall) {
			next.ServeHTTP(w, r)
			return
		}
		var says []string
		modern := mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion))
		_, asked := m.Params.Meta[mcp.MetaKeyLogLevel]
		switch token := m.Params.Meta["progressToken"]; {
		case m.Params.Name == "test_tool_with_progress" && token != nil:
			for _, n := range []int{0, 50, 100} {
				says = append(says, fmt.Sprintf(`"notifications/progress","params":{"progressToken":%s,"progress":%d,"total":100}`, token, n))
			}
		case m.Params.Name == "test_tool_with_logging" || m.Params.Name == "test_logging_tool":
			for _, text := range []string{"started", "processing data", "completed"} {
				if !modern || asked {
					says = append(says, fmt.Sprintf(`"notifications/message","params":{"level":"info","logger":"conformance","data":"Tool %s"}`, text))
				}
			}
		case m.Params.Name == "test_tool_with_progress":
		default:
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		event := func(message string) {
			fmt.Fprintf(w, "event: message\ndata: {\"jsonrpc\":\"2.0\",%s}\n\n", message)
			w.(http.Flusher).Flush()
		}
		for _, text := range says {
			event(`"method":` + text)
			time.Sleep(50 * time.Millisecond) // the scenario asks for it
		}
		kind := ""
		if modern {
			kind = `"resultType":"complete",`
		}
		event(fmt.Sprintf(`"id":%s,"result":{%s"content":[{"type":"text","text":"done"}]}`, m.ID, kind))
	})
}
