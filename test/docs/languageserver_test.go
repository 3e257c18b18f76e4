package docs

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/textproto"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// languageServer is a client of the Language Server Protocol, as an editor is one.
type languageServer struct {
	t    *testing.T
	root string // the workspace
	in   io.WriteCloser
	out  *textproto.Reader
	last int // the id of the last request
}

// startLanguageServer starts a program that speaks the protocol on its standard input and output, in a workspace.
func startLanguageServer(t *testing.T, root, program string, args ...string) *languageServer {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = root
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	l := &languageServer{t: t, root: root, in: in, out: textproto.NewReader(bufio.NewReader(out))}
	t.Cleanup(func() {
		l.request("shutdown", nil, nil)
		l.send(map[string]any{"method": "exit"})
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s %s: %v", program, args, err)
		}
	})
	l.request("initialize", map[string]any{
		"rootUri":          l.uri(""),
		"workspaceFolders": []any{map[string]any{"uri": l.uri(""), "name": "catalog"}},
		"capabilities": map[string]any{
			"workspace":    map[string]any{"workspaceFolders": true},
			"textDocument": map[string]any{"completion": map[string]any{}, "hover": map[string]any{"contentFormat": []any{"markdown"}}},
		},
	}, nil)
	l.send(map[string]any{"method": "initialized", "params": map[string]any{}})
	return l
}

func (l *languageServer) uri(name string) string {
	return "file://" + filepath.ToSlash(filepath.Join(l.root, name))
}

func (l *languageServer) send(message map[string]any) {
	l.t.Helper()
	message["jsonrpc"] = "2.0"
	data, err := json.Marshal(message)
	if err != nil {
		l.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(l.in, "Content-Length: %d\r\n\r\n%s", len(data), data); err != nil {
		l.t.Fatal(err)
	}
}

// request sends a request and decodes the result into result. What the server asks meanwhile is answered with null.
func (l *languageServer) request(method string, params, result any) {
	l.t.Helper()
	l.last++
	request := map[string]any{"id": l.last, "method": method}
	if params != nil {
		request["params"] = params
	}
	l.send(request)
	for {
		header, err := l.out.ReadMIMEHeader()
		if err != nil {
			l.t.Fatalf("%s: %v", method, err)
		}
		size, err := strconv.Atoi(header.Get("Content-Length"))
		if err != nil {
			l.t.Fatal(err)
		}
		data := make([]byte, size)
		if _, err := io.ReadFull(l.out.R, data); err != nil {
			l.t.Fatal(err)
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Result json.RawMessage
			Error  json.RawMessage
		}
		if err := json.Unmarshal(data, &m); err != nil {
			l.t.Fatalf("%v\n%s", err, data)
		}
		switch {
		case m.Method != "" && m.ID != nil:
			l.send(map[string]any{"id": m.ID, "result": nil})
		case m.Method != "":
		case string(m.ID) != strconv.Itoa(l.last) || m.Error != nil:
			l.t.Fatalf("%s: got %s", method, data)
		default:
			if result != nil {
				if err := json.Unmarshal(m.Result, result); err != nil {
					l.t.Fatalf("%s: %v\n%s", method, err, m.Result)
				}
			}
			return
		}
	}
}

// at opens a file that need not exist, with the cursor at | in its text, and returns the labels that are completed
// there and the text that hovering shows.
func (l *languageServer) at(name, language, text string) (labels []string, hover string) {
	l.t.Helper()
	before, after, ok := strings.Cut(text, "|")
	if !ok {
		l.t.Fatalf("no cursor in %q", text)
	}
	document := map[string]any{"uri": l.uri(name)}
	l.send(map[string]any{"method": "textDocument/didOpen", "params": map[string]any{"textDocument": map[string]any{
		"uri": l.uri(name), "languageId": language, "version": 1, "text": before + after,
	}}})
	defer l.send(map[string]any{"method": "textDocument/didClose", "params": map[string]any{"textDocument": document}})
	position := map[string]any{"textDocument": document, "position": map[string]any{
		"line": strings.Count(before, "\n"), "character": len(before) - strings.LastIndex(before, "\n") - 1,
	}}
	var completion struct{ Items []struct{ Label string } }
	l.request("textDocument/completion", position, &completion)
	for _, item := range completion.Items {
		labels = append(labels, item.Label)
	}
	var shown *struct{ Contents struct{ Value string } }
	l.request("textDocument/hover", position, &shown)
	if shown != nil {
		hover = shown.Contents.Value
	}
	return labels, hover
}
