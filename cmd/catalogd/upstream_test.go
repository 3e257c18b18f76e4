package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
)

// upstream is a small MCP server on stdin and stdout. `upstream FILE` writes its process id and that of a child into the
// file, so that a script can see that both end; `upstream -tools FILE` offers the tools in the file. The tool pid
// tells the process id.
func upstream() {
	tools := "[]"
	if len(os.Args) > 2 && os.Args[1] == "-tools" {
		data, err := os.ReadFile(os.Args[2])
		if err != nil {
			panic(err)
		}
		tools = string(data)
	} else if len(os.Args) > 1 {
		child := exec.Command("sleep", "300")
		if err := child.Start(); err != nil {
			panic(err)
		}
		if err := os.WriteFile(os.Args[1], fmt.Appendf(nil, "%d\n%d\n", os.Getpid(), child.Process.Pid), 0o644); err != nil {
			panic(err)
		}
	}
	fmt.Fprintln(os.Stderr, "upstream: ready")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Name      string          `json:"name"`
				Arguments json.RawMessage `json:"arguments"`
			} `json:"params"`
		}
		if err := json.Unmarshal(in.Bytes(), &m); err != nil {
			panic(err)
		}
		answer := map[string]any{"jsonrpc": "2.0", "id": m.ID}
		switch {
		case m.ID == nil:
			continue
		case m.Method == "initialize":
			answer["result"] = map[string]any{
				"protocolVersion": "2025-06-18", "capabilities": map[string]any{"tools": map[string]any{}},
				"serverInfo": map[string]string{"name": "upstream", "version": "1"},
			}
		case m.Method == "tools/list":
			answer["result"] = map[string]any{"tools": json.RawMessage(tools)}
		case m.Method == "tools/call" && m.Params.Name == "pid":
			answer["result"] = map[string]any{"content": []any{map[string]string{"type": "text", "text": fmt.Sprint(os.Getpid())}}}
		case m.Method == "tools/call":
			answer["result"] = map[string]any{
				"content": []any{map[string]string{"type": "text", "text": fmt.Sprintf("%s got %s", m.Params.Name, m.Params.Arguments)}},
			}
		default:
			answer["error"] = map[string]any{"code": -32601, "message": "method not found"}
		}
		if err := json.NewEncoder(os.Stdout).Encode(answer); err != nil {
			return
		}
	}
}
