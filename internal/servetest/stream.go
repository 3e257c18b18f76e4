package servetest

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Listen opens a subscription of 2026-07-28.
func (d *Server) Listen(t testing.TB, path string, header []string) *stream {
	t.Helper()
	const method, params = "subscriptions/listen", `"notifications":{"toolsListChanged":true}`
	return d.Begin(t, path, ModernBody(method, params), append(ModernHeader(method, params), header...)...)
}

// Begin sends a request that is answered by a stream.
func (d *Server) Begin(t testing.TB, path, body string, header ...string) *stream {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, d.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if got.StatusCode != 200 {
		t.Fatalf("%s: %d", body, got.StatusCode)
	}
	t.Cleanup(func() { got.Body.Close() })
	return &stream{got.Body, bufio.NewReader(got.Body)}
}

// Events collects what a stream says, until it ends.
func (s *stream) Events() <-chan string {
	events := make(chan string, 100)
	go func() {
		defer close(events)
		for {
			line, err := s.reader.ReadString('\n')
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				events <- strings.TrimSpace(data)
			}
			if err != nil {
				return
			}
		}
	}()
	return events
}

// stream is an open GET or listen stream.
type stream struct {
	Body   io.ReadCloser
	reader *bufio.Reader
}

// Stream opens the stream of notifications of a session.
func (d *Server) Stream(t testing.TB, path string, header []string) *stream {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, d.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if got.StatusCode != 200 {
		t.Fatalf("GET %s: %d", path, got.StatusCode)
	}
	t.Cleanup(func() { got.Body.Close() })
	return &stream{got.Body, bufio.NewReader(got.Body)}
}

// Event reads the data of the next event.
func (s *stream) Event(t testing.TB) string {
	t.Helper()
	for {
		line, err := s.reader.ReadString('\n')
		if err != nil {
			t.Fatalf("the stream ended: %v", err)
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			return strings.TrimSpace(data)
		}
	}
}

// Comment reads to the next comment.
func (s *stream) Comment(t testing.TB) {
	t.Helper()
	for {
		line, err := s.reader.ReadString('\n')
		if err != nil {
			t.Fatalf("the stream ended: %v", err)
		}
		if strings.HasPrefix(line, ":") {
			return
		}
	}
}

// Rest reads to the stream's end.
func (s *stream) Rest(t testing.TB) string {
	t.Helper()
	done := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(s.reader)
		done <- string(b)
	}()
	select {
	case rest := <-done:
		return rest
	case <-time.After(2 * time.Minute):
		t.Fatal("the stream does not end")
		return ""
	}
}
