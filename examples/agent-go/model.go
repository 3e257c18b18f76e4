package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
)

// model is a model behind OpenAI's Chat Completions API.
type model struct{ provider, name string }

// reply is a message of the model, as far as the loop reads it. raw is the whole message: the conversation
// goes on with it, and catalogd reads the calls in it.
type reply struct {
	raw       json.RawMessage
	Content   string
	ToolCalls []toolCall `json:"tool_calls"`
}

type toolCall struct {
	ID string
	// Arguments are the text of a JSON object, as the model wrote it.
	Function struct{ Name, Arguments string }
}

// result is the message of the role tool that answers a call.
type result struct {
	Role       string `json:"role"`
	ToolCallID string `json:"tool_call_id"`
	Content    string `json:"content"`
}

// complete asks the model for its next message.
func (m model) complete(ctx context.Context, messages []any, offered json.RawMessage) (r reply, err error) {
	body := map[string]any{"model": m.name, "messages": messages, "tools": offered}
	var response struct {
		Choices []struct{ Message json.RawMessage }
	}
	url := m.provider + "/chat/completions"
	if err := send(ctx, http.MethodPost, url, os.Getenv("OPENAI_API_KEY"), body, &response); err != nil {
		return r, err
	}
	if len(response.Choices) == 0 {
		return r, errors.New("the model's response has no choices")
	}
	r.raw = response.Choices[0].Message
	return r, json.Unmarshal(r.raw, &r)
}

// send sends a request with a JSON body, or none if body is nil, and decodes the JSON of the response.
func send(ctx context.Context, method, url, token string, body, into any) error {
	var payload io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return err
		}
		payload = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, payload)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	authorize(req, token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s: %s", method, url, resp.Status, bytes.TrimSpace(raw))
	}
	return json.Unmarshal(raw, into)
}

func authorize(req *http.Request, token string) {
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
}
