package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
)

// script is what the stand-in says: a list of lines, each said after a message that has a text.
//
//go:embed script.json
var script []byte

type line struct {
	After string // what the last message has
	Say   string
	Calls []struct {
		Name      string
		Arguments json.RawMessage
	}
}

// standIn serves the script as a provider does, at the returned URL until stop is called. It remembers
// nothing: it reads the conversation, and says the first line that follows the last message.
func standIn() (url string, stop func(), err error) {
	var lines []line
	if err := json.Unmarshal(script, &lines); err != nil {
		return "", nil, fmt.Errorf("script.json: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		var request struct{ Messages []spoken }
		err := json.NewDecoder(r.Body).Decode(&request)
		if err == nil {
			err = answered(request.Messages)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		last := request.Messages[len(request.Messages)-1].Content
		for _, l := range lines {
			if strings.Contains(last, l.After) {
				_ = json.NewEncoder(w).Encode(l.completion(len(request.Messages))) // the agent sees a short answer
				return
			}
		}
		http.Error(w, "script.json has no line after "+last, http.StatusUnprocessableEntity)
	})
	server := &http.Server{Handler: mux}
	go func() { _ = server.Serve(listener) }() // it ends with Close
	return "http://" + listener.Addr().String() + "/v1", func() { _ = server.Close() }, nil
}

// spoken is a message of the conversation.
type spoken struct {
	Content    string
	ToolCalls  []toolCall `json:"tool_calls"`
	ToolCallID string     `json:"tool_call_id"`
}

// answered holds a conversation to what OpenAI demands of it: each call is answered before anything else.
func answered(messages []spoken) error {
	if len(messages) == 0 {
		return fmt.Errorf("there are no messages")
	}
	open := map[string]bool{}
	for _, m := range messages {
		if m.ToolCallID != "" {
			delete(open, m.ToolCallID)
		} else if len(open) > 0 {
			break
		}
		for _, call := range m.ToolCalls {
			open[call.ID] = true
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("tool calls have no result: %v", open)
	}
	return nil
}

// completion writes the line as a response of Chat Completions. n makes the ids of its calls.
func (l line) completion(n int) any {
	calls := []any{}
	for i, call := range l.Calls {
		calls = append(calls, map[string]any{"id": fmt.Sprintf("call_%d_%d", n, i), "type": "function",
			"function": map[string]string{"name": call.Name, "arguments": string(call.Arguments)}})
	}
	message := map[string]any{"role": "assistant", "content": l.Say}
	reason := "stop"
	if len(calls) > 0 {
		message["tool_calls"], reason = calls, "tool_calls"
	}
	return map[string]any{"object": "chat.completion", "model": "stand-in",
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": reason}}}
}
