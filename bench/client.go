package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// protocol is the revision that the client and the upstream speak, so that every call costs the upstream the same.
const protocol = "2025-06-18"

// session is one MCP session over streamable HTTP, for one goroutine.
type session struct {
	url, id string
	client  *http.Client
	last    int
}

func newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConns: 128, MaxIdleConnsPerHost: 128, DisableCompression: true}}
}

// open begins a session.
func open(ctx context.Context, url string, client *http.Client) (*session, error) {
	s := &session{url: url, client: client}
	_, err := s.call(ctx, "initialize", `{"protocolVersion":"`+protocol+`","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}`)
	if err != nil {
		return nil, err
	}
	resp, err := s.post(ctx, []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode >= 300 {
		return nil, fmt.Errorf("notifications/initialized: HTTP %d, %w", resp.StatusCode, err)
	}
	return s, nil
}

func (s *session) post(ctx context.Context, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if s.id != "" {
		req.Header.Set("Mcp-Session-Id", s.id)
		req.Header.Set("Mcp-Protocol-Version", protocol)
	}
	return s.client.Do(req)
}

// call returns the message that answers the request, from JSON or from the end of an event stream.
func (s *session) call(ctx context.Context, method, params string) ([]byte, error) {
	s.last++
	resp, err := s.post(ctx, []byte(`{"jsonrpc":"2.0","id":`+strconv.Itoa(s.last)+`,"method":"`+method+`","params":`+params+`}`))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, err := io.ReadAll(io.LimitReader(resp.Body, 300))
		return nil, errors.Join(fmt.Errorf("%s: HTTP %d: %s", method, resp.StatusCode, bytes.TrimSpace(text)), err)
	}
	if method == "initialize" {
		s.id = resp.Header.Get("Mcp-Session-Id")
	}
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return io.ReadAll(resp.Body)
	}
	var answer []byte
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		if data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: ")); ok {
			answer = bytes.Clone(data)
		}
	}
	return answer, lines.Err()
}

func (s *session) close(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, s.url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Mcp-Session-Id", s.id)
	req.Header.Set("Mcp-Protocol-Version", protocol)
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// list returns the names of all tools and the size of the list.
func (s *session) list(ctx context.Context) ([]string, int, error) {
	answer, err := s.call(ctx, "tools/list", `{}`)
	if err != nil {
		return nil, 0, err
	}
	var r struct {
		Result struct{ Tools []struct{ Name string } }
	}
	if err := json.Unmarshal(answer, &r); err != nil {
		return nil, 0, fmt.Errorf("tools/list: %w in %.200s", err, answer)
	}
	names := make([]string, 0, len(r.Result.Tools))
	for _, t := range r.Result.Tools {
		names = append(names, t.Name)
	}
	return names, len(answer), nil
}

// echo calls the tool once, and checks that its own word comes back.
func (s *session) echo(ctx context.Context, tool, word string) error {
	answer, err := s.call(ctx, "tools/call", `{"name":"`+tool+`","arguments":{"q":"`+word+`","limit":10,"order":"asc","verbose":false,"tags":["a","b"]}}`)
	if err != nil {
		return err
	}
	if !bytes.Contains(answer, []byte(`"echo `+word+`"`)) || bytes.Contains(answer, []byte(`"isError":true`)) {
		return fmt.Errorf("tools/call: %.300s", answer)
	}
	return nil
}

// load has c callers, each in a session of its own, call tools in turn for warm and then for turn, and returns what each
// call of turn took. Any failed call ends it: a figure with errors in it means nothing. begin is called when turn begins.
func load(ctx context.Context, url string, c int, tools []string, warm, turn time.Duration, begin func()) ([]time.Duration, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	client := newClient()
	defer client.CloseIdleConnections()
	sessions := make([]*session, c)
	for i := range sessions {
		var err error
		if sessions[i], err = open(ctx, url, client); err != nil {
			return nil, err
		}
	}
	var all []time.Duration
	var mu sync.Mutex
	phase := func(prefix string, d time.Duration) {
		all = all[:0]
		end := time.Now().Add(d)
		var callers sync.WaitGroup
		for i, s := range sessions {
			callers.Go(func() {
				mine := make([]time.Duration, 0, 1<<14)
				for n := 0; ctx.Err() == nil; n++ {
					from := time.Now()
					if from.After(end) {
						break
					}
					if err := s.echo(ctx, tools[(i+n)%len(tools)], fmt.Sprintf("%s%dx%dz", prefix, i, n)); err != nil {
						cancel(err)
						return
					}
					mine = append(mine, time.Since(from))
				}
				mu.Lock()
				defer mu.Unlock()
				all = append(all, mine...)
			})
		}
		callers.Wait()
	}
	phase("w", warm)
	begin()
	phase("x", turn)
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	for _, s := range sessions {
		if err := s.close(ctx); err != nil {
			return nil, err
		}
	}
	return all, nil
}
