package mcpserver_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/catalogd/catalogd/internal/servetest"
)

var update = flag.Bool("update", false, "write the answers of transcripts anew")

// TestTranscripts plays the requests of testdata/mcp against a front and compares each answer. A file NAME.request holds
// a request line, headers, an empty line and a body; NAME.response is its answer. $SESSION stands for the session that
// the last initialize began; ids that are random in the answers stand as ID.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../testdata/mcp/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v: %d files", err, len(files))
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			d := servetest.Start(t, servetest.Weather())
			golden := map[string]string{}
			for _, f := range archive.Files {
				golden[f.Name] = string(f.Data)
			}
			played := &txtar.Archive{Comment: archive.Comment}
			session := ""
			for _, f := range archive.Files {
				name, ok := strings.CutSuffix(f.Name, ".request")
				if !ok {
					continue
				}
				got := play(t, d, string(f.Data), &session)
				played.Files = append(played.Files, f, txtar.File{Name: name + ".response", Data: []byte(got)})
				if want := golden[name+".response"]; !*update && got != want {
					t.Errorf("%s\n%s", name, cmp.Diff(want, got))
				}
			}
			if *update {
				if err := os.WriteFile(file, txtar.Format(played), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

var (
	random     = regexp.MustCompile(`[0-9a-f]{32}`)
	shownNames = []string{"Content-Type", "Allow", "Mcp-Session-Id"}
)

func play(t *testing.T, d *servetest.Server, request string, session *string) string {
	t.Helper()
	head, body, _ := strings.Cut(request, "\n\n")
	lines := strings.Split(strings.TrimSpace(head), "\n")
	method, path, _ := strings.Cut(lines[0], " ")
	var header []string
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ": ")
		header = append(header, name, strings.ReplaceAll(value, "$SESSION", *session))
	}
	r := d.Do(t, method, path, strings.TrimSpace(body), header...)
	if id := r.Header.Get("Mcp-Session-Id"); id != "" {
		*session = id
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s\n", r.Status, http.StatusText(r.Status))
	for _, name := range shownNames {
		if value := r.Header.Get(name); value != "" {
			fmt.Fprintf(&b, "%s: %s\n", name, value)
		}
	}
	b.WriteByte('\n')
	if r.Body != "" {
		var indented bytes.Buffer
		if err := json.Indent(&indented, []byte(strings.TrimSpace(r.Body)), "", "  "); err != nil {
			indented.Reset()
			indented.WriteString(strings.TrimSpace(r.Body))
		}
		b.Write(indented.Bytes())
		b.WriteByte('\n')
	}
	return random.ReplaceAllString(b.String(), "ID")
}
