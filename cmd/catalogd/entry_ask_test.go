package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/registry"
)

func (h *house) serve(t *testing.T, cfg catalogd.Config) {
	t.Helper()
	var err error
	if h.catalog, err = catalogd.New(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.catalog.Close)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h.url = "http://" + ln.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- h.catalog.Serve(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// command runs catalogd and returns what it prints.
func (h *house) command(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("catalogd", args...)
	cmd.Dir = h.dir
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(h.dir, ".state"), "CATALOGD_TOKEN="+h.secret)
	var exit *exec.ExitError
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if out.Len() == 0 {
		return errs.String()
	}
	return out.String()
}

// told is what the policy says that it was asked: the first JSON object with a principal in a text, in one form.
func told(text string) string {
	for i := range text {
		for _, start := range []string{`{"arguments"`, `{\"arguments\"`, `{\\\"arguments\\\"`} {
			if !strings.HasPrefix(text[i:], start) {
				continue
			}
			text = text[i:]
			for strings.Contains(text, `\"`) {
				text = strings.ReplaceAll(strings.ReplaceAll(text, `\\`, `\`), `\"`, `"`)
			}
			var asked map[string]json.RawMessage
			d := json.NewDecoder(strings.NewReader(text))
			if d.Decode(&asked) != nil {
				return "unreadable: " + text
			}
			var plain any
			n := json.NewDecoder(strings.NewReader(text))
			n.UseNumber()
			if n.Decode(&plain) != nil {
				return "unreadable: " + text
			}
			var b bytes.Buffer
			e := json.NewEncoder(&b)
			e.SetEscapeHTML(false)
			_ = e.Encode(plain) // what was decoded encodes
			return strings.TrimSpace(b.String())
		}
	}
	return ""
}

func withoutID(text string) string {
	for _, c := range changing {
		text = c.pattern.ReplaceAllString(text, c.name)
	}
	return text
}

func ended(t *testing.T, call registry.Call, err error) string {
	t.Helper()
	if err != nil || call.Err == nil {
		t.Fatalf("%+v %v", call, err)
	}
	return call.Err.Error()
}

func decode(t *testing.T, raw []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
}

func quoted(t *testing.T, v any) string {
	t.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// message is a request of an era.
func message(modern bool, id int, method, params string) string {
	if modern {
		if params != "" {
			params += ","
		}
		params += `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + era2026 + `","io.modelcontextprotocol/clientCapabilities":{}}`
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s}}`, id, method, params)
}

func callParams(tool string) string {
	return fmt.Sprintf(`"name":%q,"arguments":%s`, tool, askedArguments)
}

func (h *house) request(t *testing.T, method, path, body string, header map[string]string) []byte {
	t.Helper()
	return h.response(t, method, path, body, header).body
}

func (h *house) response(t *testing.T, method, path, body string, header map[string]string) response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, h.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if h.secret != "" {
		r.Header.Set("Authorization", "Bearer "+h.secret)
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	raw, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response{got.Header, raw}
}

// mcp sends one request of an era over HTTP.
func (h *house) mcp(t *testing.T, modern bool, method, name, params string) []byte {
	t.Helper()
	const path = "/branches/default/mcp"
	if modern {
		header := map[string]string{"Mcp-Protocol-Version": era2026, "Mcp-Method": method}
		if name != "" {
			header["Mcp-Name"] = name
		}
		return h.request(t, http.MethodPost, path, message(true, 1, method, params), header)
	}
	begun := h.response(t, http.MethodPost, path, message(false, 0, "initialize", initializing), nil)
	return h.request(t, http.MethodPost, path, message(false, 1, method, params), map[string]string{
		"Mcp-Protocol-Version": era2025, "Mcp-Session-Id": begun.header.Get("Mcp-Session-Id"),
	})
}

func overHTTP(modern bool) func(*testing.T, *house, string) string {
	return func(t *testing.T, h *house, tool string) string {
		return string(h.mcp(t, modern, "tools/call", tool, callParams(tool)))
	}
}

func listsOverHTTP(modern bool) func(*testing.T, *house) []string {
	return func(t *testing.T, h *house) []string { return namesIn(t, h.mcp(t, modern, "tools/list", "", "")) }
}

// stdio runs `catalogd stdio` for one request, and returns its answer.
func (h *house) stdio(t *testing.T, modern bool, method, params string) []byte {
	t.Helper()
	cmd := exec.Command("catalogd", "stdio")
	cmd.Dir = h.dir
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(h.dir, ".state"))
	var lines []string
	if !modern {
		lines = append(lines, message(false, 0, "initialize", initializing), `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	}
	cmd.Stdin = strings.NewReader(strings.Join(append(lines, message(modern, 1, method, params)), "\n") + "\n")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for answers := bufio.NewScanner(bytes.NewReader(out)); answers.Scan(); {
		var answer struct{ ID int }
		if decode(t, answers.Bytes(), &answer); answer.ID == 1 {
			return answers.Bytes()
		}
	}
	t.Fatalf("no answer in %s", out)
	return nil
}

func overStdio(modern bool) func(*testing.T, *house, string) string {
	return func(t *testing.T, h *house, tool string) string {
		return string(h.stdio(t, modern, "tools/call", callParams(tool)))
	}
}

func listsOverStdio(modern bool) func(*testing.T, *house) []string {
	return func(t *testing.T, h *house) []string { return namesIn(t, h.stdio(t, modern, "tools/list", "")) }
}

func namesIn(t *testing.T, answer []byte) (names []string) {
	t.Helper()
	var list struct {
		Result struct{ Tools []struct{ Name string } }
	}
	decode(t, answer, &list)
	for _, tool := range list.Result.Tools {
		names = append(names, tool.Name)
	}
	return names
}
