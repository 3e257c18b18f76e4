package binding_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/catalogd/catalogd/internal/binding"
	"github.com/catalogd/catalogd/registry"
)

// scripted is one answer of a service: "503 busy Retry-After: 1".
func scripted(t *testing.T, w http.ResponseWriter, script string) {
	t.Helper()
	script, header, _ := strings.Cut(script, " Retry-After: ")
	status, body, _ := strings.Cut(script, " ")
	if status == "closed" {
		panic(http.ErrAbortHandler) // which closes the connection
	}
	code, err := strconv.Atoi(status)
	if err != nil {
		t.Errorf("no status: %q", script)
	}
	if header != "" {
		w.Header().Set("Retry-After", header)
	}
	w.WriteHeader(code)
	io.WriteString(w, body)
}

// shownResult is a result as the tables of docs/bindings.md have it.
func shownResult(t *testing.T, r *registry.Result, err error) string {
	t.Helper()
	var known *registry.Error
	if errors.As(err, &known) {
		return string(known.Code) + ": " + known.Msg // without the operator's part
	}
	if err != nil {
		return err.Error()
	}
	text := strings.ReplaceAll(content(t, r), "\n", "⏎")
	if r.IsError {
		text = "error: " + text
	}
	return text
}

// called runs the tool of a row against a server, and counts its retries.
func called(t *testing.T, declaration string, serve http.HandlerFunc) (string, int) {
	t.Helper()
	server := httptest.NewServer(serve)
	defer server.Close()
	tool := declaredHTTP(t, declaration)
	tool.Binding.HTTP.URL = strings.Replace(tool.Binding.HTTP.URL, "https://x.example", server.URL, 1)
	if tool.Binding.HTTP.Pages != nil {
		tool.Binding.HTTP.Output = "json"
	}
	retries := 0
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	r, err := bind(t, tool, loopback, binding.Deps{}).Invoke(ctx, registry.Invocation{
		Args: checked(t, tool, "{}"), To: registry.Listener{Retried: func() { retries++ }},
	})
	return shownResult(t, r, err), retries
}

// TestDocumentedAnswers holds what docs/bindings.md says of answers.
func TestDocumentedAnswers(t *testing.T) {
	t.Parallel()
	for _, row := range rows(t, "| declaration | answer | result |") {
		got, _ := called(t, row[0], func(w http.ResponseWriter, _ *http.Request) { scripted(t, w, row[1]) })
		if got != row[2] {
			t.Errorf("%s %s:\ngot  %s\nwant %s", row[0], row[1], got, row[2])
		}
	}
}

// TestDocumentedPages holds what docs/bindings.md says of pages.
func TestDocumentedPages(t *testing.T) {
	t.Parallel()
	for _, row := range rows(t, "| declaration | pages | result |") {
		pages := map[string]string{}
		for _, page := range strings.Split(row[1], "; /") {
			at, answer, _ := strings.Cut("/"+strings.TrimPrefix(page, "/"), ": ")
			pages[at] = answer
		}
		got, _ := called(t, row[0], func(w http.ResponseWriter, r *http.Request) {
			answer, ok := pages[r.RequestURI]
			if !ok {
				w.WriteHeader(http.StatusNotFound)
				io.WriteString(w, "no such page")
			}
			body, link, linked := strings.Cut(answer, " Link: ")
			if linked {
				w.Header().Set("Link", link)
			}
			io.WriteString(w, body)
		})
		if got != row[2] {
			t.Errorf("%s %s:\ngot  %s\nwant %s", row[0], row[1], got, row[2])
		}
	}
}

// TestDocumentedRetries holds what docs/bindings.md says of retries.
func TestDocumentedRetries(t *testing.T) {
	t.Parallel()
	for _, row := range rows(t, "| declaration | answers | result |") {
		answers := strings.Split(row[1], ", ")
		var mu sync.Mutex
		sent := 0
		got, retries := called(t, row[0], func(w http.ResponseWriter, _ *http.Request) {
			mu.Lock()
			sent++
			answer := "400 asked too often"
			if sent <= len(answers) {
				answer = answers[sent-1]
			}
			mu.Unlock()
			scripted(t, w, answer)
		})
		if got += fmt.Sprintf(" after %d retries", retries); got != row[2] {
			t.Errorf("%s %s:\ngot  %s\nwant %s", row[0], row[1], got, row[2])
		}
	}
}

// A program over an error or an answer sees no secret, and neither does its caller, however the program writes it.
func TestProgramsSeeNoSecret(t *testing.T) {
	t.Setenv("HTTP_TOKEN", "s3cr3t/value")
	for declaration, want := range map[string]string{
		`error: ".body | @base64 | @base64d"`:                          "error: the service answered HTTP 400 Bad Request⏎you sent ***",
		`error: "\"s3cr3t\" + \"/value\""`:                             "error: the service answered HTTP 400 Bad Request⏎***",
		`success: [400], output: "json", select: "{a: 1}"`:             "result_invalid: the service's answer was to be one JSON value, and is not, so nothing of it can be selected",
		`success: [400], output: "text"`:                               "you sent ***",
		`error: ".body | split(\" \") | map(length) | add | tostring"`: "error: the service answered HTTP 400 Bad Request⏎10",
	} {
		got, _ := called(t, declaration+`, query: {key: {secret: "env:HTTP_TOKEN"}}`, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, "you sent "+r.URL.Query().Get("key"))
		})
		if got != want {
			t.Errorf("%s: got %s, want %s", declaration, got, want)
		}
	}
}

// A multipart body reaches the service as declared, whatever its values hold.
func TestMultipart(t *testing.T) {
	t.Parallel()
	tool := declaredHTTP(t, `method: "POST", body: {kind: "multipart", args: ["text", "tags", "file", "files"],
		files: {file: {name: "a.bin", contentType: "application/octet-stream"}, files: {name: "b.png", contentType: "image/png"}}}`)
	boundaries := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		boundaries[r.Header.Get("Content-Type")] = true
		parts, err := r.MultipartReader()
		if err != nil {
			t.Error(err)
			return
		}
		for {
			p, err := parts.NextPart()
			if err == io.EOF {
				return
			}
			if err != nil {
				t.Error(err)
				return
			}
			data, err := io.ReadAll(p)
			if err != nil {
				t.Error(err)
			}
			fmt.Fprintf(w, "%s %s %s %q\n", p.FormName(), p.FileName(), p.Header.Get("Content-Type"), data)
		}
	}))
	defer server.Close()
	tool.Binding.HTTP.URL = server.URL + "/v"
	const hostile = "--boundary\\r\\nContent-Disposition: form-data; name=\\\"admin\\\"\\r\\n\\r\\n1\\r\\n--boundary--"
	in := checked(t, tool, `{"text": "`+strings.ReplaceAll(hostile, `\\`, `\`)+`", "tags": ["a", "b"], "file": "AAH/", "files": ["aQ==", ""]}`)
	for range 2 {
		r, err := bind(t, tool, loopback, binding.Deps{}).Invoke(t.Context(), registry.Invocation{Args: in})
		if err != nil {
			t.Fatal(err)
		}
		const want = "file a.bin application/octet-stream \"\\x00\\x01\\xff\"\nfiles b.png image/png \"i\"\nfiles b.png image/png \"\"\ntags   \"a\"\ntags   \"b\"\n" +
			`text   "--boundary\r\nContent-Disposition: form-data; name=\"admin\"\r\n\r\n1\r\n--boundary--"` + "\n"
		if got := content(t, r); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
	if len(boundaries) != 2 {
		t.Errorf("the boundaries are not random: %v", boundaries)
	}
}

// The statuses of a success that a write declares decide what became of its effect.
func TestDeclaredSuccessOfWrites(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { scripted(t, w, r.URL.Query().Get("status")+" {}") }))
	defer server.Close()
	tool := serviceOf(t, server.URL, "POST", "json")
	tool.Binding.HTTP.Success = []int{200, 303, 409}
	base := tool.Binding.HTTP.URL
	for status, want := range map[string]registry.Outcome{
		"200": registry.OutcomeSucceeded, "303": registry.OutcomeSucceeded, "409": registry.OutcomeSucceeded,
		"202": registry.OutcomeUnclear, "302": registry.OutcomeUnclear, "400": registry.OutcomeFailed, "502": registry.OutcomeUnclear,
	} {
		tool.Binding.HTTP.URL = base + "?status=" + status
		outcome, r, err := write(t.Context(), t, tool, loopback, "k")
		if err != nil || outcome != want || r.IsError != (want != registry.OutcomeSucceeded) {
			t.Errorf("%s: got %s, want %s: %+v, %v", status, outcome, want, r, err)
		}
	}
}

// An answer of a write that select can't read has had its effect.
func TestSelectOfWrites(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { scripted(t, w, "201 [1]") }))
	defer server.Close()
	tool := serviceOf(t, server.URL, "POST", "json")
	for program, says := range map[string]string{".[0]": "", ".a": "select program failed", "[range(3000000)]": "larger than"} {
		tool.Binding.HTTP.Select = program
		outcome, r, err := write(t.Context(), t, tool, loopback, "k")
		if outcome != registry.OutcomeSucceeded || says == "" && (err != nil || content(t, r) != "1") || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: %s, %+v, %v", program, outcome, r, err)
		}
	}
}
