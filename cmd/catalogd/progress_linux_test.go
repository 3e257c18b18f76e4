package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// TestProgressOnATerminal has `catalogd lock` wait for a server, with a real terminal as standard error. Its
// line of progress is gone in the end, whether the server answers or the command is interrupted.
func TestProgressOnATerminal(t *testing.T) {
	program, err := exec.LookPath("catalogd")
	if err != nil {
		t.Fatal(err)
	}
	var answer sync.Map // a channel for each run, closed when the server may answer
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil { // else a client that goes is not noticed
			t.Error(err)
		}
		if may, ok := answer.Load(r.URL.Path); ok {
			select {
			case <-may.(chan struct{}):
			case <-r.Context().Done():
			}
		}
		w.WriteHeader(http.StatusTeapot)
	}))
	defer server.Close()
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "c")
	if out, err := exec.Command(program, "init", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("policy/trust/data.yaml", "entries:\n  slow: {host: 127.0.0.1, scheme: http, port: "+at.Port()+", addresses: [127.0.0.0/8]}\n")
	for _, tt := range []struct {
		name, columns, seen, last string
		interrupt                 bool
	}{
		{"answered", "30", "asking the servers: 0 of 1 ", "", false},
		{"interrupted", "", "asking the servers: 0 of 1 servers, waiting for kestrel", "catalogd: interrupted", true},
	} {
		may := make(chan struct{})
		answer.Store("/"+tt.name, may)
		write("catalog/slow.cue", "package catalog\n\nservers: kestrel: {transport: http: url: \""+server.URL+"/"+tt.name+"\", discover: {}}\n")
		tty, screen := pseudoTerminal(t)
		cmd := exec.Command(program, "lock", "-C", dir, "--log-format", "text")
		cmd.Env = append(os.Environ(), "NO_COLOR=1", "TERM=xterm", "COLUMNS="+tt.columns)
		var stdout bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, screen
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if err := screen.Close(); err != nil {
			t.Fatal(err)
		}
		var all []byte
		waiting := true
		for buffer := make([]byte, 4096); ; {
			n, err := tty.Read(buffer) // an error once no process has the terminal open
			all = append(all, buffer[:n]...)
			if waiting && strings.Contains(string(all), tt.seen) {
				waiting = false
				if tt.interrupt {
					if err := cmd.Process.Signal(os.Interrupt); err != nil {
						t.Error(err)
					}
				} else {
					close(may)
				}
			}
			if err != nil {
				break
			}
		}
		if err := cmd.Wait(); err == nil {
			t.Errorf("%s: it succeeds", tt.name)
		}
		shown := onScreen(t, strings.ReplaceAll(string(all), "\r\n", "\n"))
		said := shown[len(shown)-2]
		if waiting || shown[len(shown)-1] != "" || slices.ContainsFunc(shown, func(l string) bool { return strings.Contains(l, "asking") }) {
			t.Errorf("%s: the terminal shows %q of %q", tt.name, shown, all)
		}
		if tt.interrupt && said != tt.last || !tt.interrupt && !strings.Contains(said, `server "kestrel" could not be asked`) {
			t.Errorf("%s: it says %q in the end", tt.name, said)
		}
		for _, line := range strings.FieldsFunc(string(all), func(r rune) bool { return r == '\r' || r == '\n' }) {
			if tt.columns != "" && strings.Contains(line, "asking") && len(line) > 28 {
				t.Errorf("%s: the line %q is wider than the terminal", tt.name, line)
			}
		}
		if strings.Contains(stdout.String(), "asking") {
			t.Errorf("%s: standard output has the progress: %q", tt.name, stdout.String())
		}
	}
}
