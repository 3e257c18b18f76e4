// Command notes is an MCP server on standard input and output, with one tool that finds notes.
package main

import (
	"context"
	"log"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var notes = []string{"Buy milk.", "Call Ada."}

type query struct {
	Word string `json:"word"`
}

func find(_ context.Context, _ *mcp.CallToolRequest, q query) (*mcp.CallToolResult, any, error) {
	var found []string
	for _, note := range notes {
		if strings.Contains(strings.ToLower(note), strings.ToLower(q.Word)) {
			found = append(found, note)
		}
	}
	text := strings.Join(found, "\n")
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
}

func main() {
	server := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "find", Description: "Find the notes that contain a word."}, find)
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		log.Fatal(err)
	}
}
