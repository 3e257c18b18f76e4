// Package clients lists the MCP clients whose configuration files catalogd reads and writes. One row
// describes one client, from its documentation; importing and exporting use the same rows.
package clients

import (
	"fmt"
	"regexp"
	"strings"
)

// Client describes the configuration file of one MCP client.
type Client struct {
	// Name is what --client takes.
	Name string
	// Title is the client's name in messages.
	Title string
	// File is where the client reads the file, as its documentation writes it.
	File string
	// Docs is the page that describes the file.
	Docs string
	// Under are the keys of the file that hold servers, the one to write first.
	Under []string
	// Dollar says that the client expands $NAME anywhere in a text. ${NAME} and the like are recognized for
	// every client.
	Dollar bool
	// URLIsSSE says that url without a type means the deprecated SSE transport.
	URLIsSSE bool

	// HTTPType and StdioType are the types of servers; empty where the client needs none.
	HTTPType, StdioType string
	// URLKey is the field of a server's URL; empty for url.
	URLKey string
	// Variable is how the client refers to the environment variable %s in a header or in the environment of a
	// command; empty where it can't.
	Variable string
	// StdioOnly says that the client's file takes only servers that it starts.
	StdioOnly bool
	// EnvKey is the field of the environment of a command; empty for env.
	EnvKey string
	// Line says that command is the whole command line, a list.
	Line bool
	// YAML says that the file is YAML, Listed that the servers are a list, Inputs that variables are declared
	// as inputs.
	YAML, Listed, Inputs bool
}

// What entries may be called, and how environment variables are.
var (
	ValidName     = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	ValidVariable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// All returns the clients by name. Clients of one form are separate rows: the paths and the variables differ.
func All() []Client {
	return []Client{
		{Name: "claude-code", Title: "Claude Code", File: ".mcp.json, ~/.claude.json",
			Docs: "https://code.claude.com/docs/en/mcp", Under: []string{"mcpServers", "projects"},
			HTTPType: "http", StdioType: "stdio", Variable: "${%s}"},
		{Name: "claude-desktop", Title: "Claude Desktop", File: "claude_desktop_config.json in ~/Library/Application Support/Claude/ (macOS) or %APPDATA%\\Claude\\ (Windows)",
			Docs:      "https://modelcontextprotocol.io/docs/develop/connect-local-servers",
			Under:     []string{"mcpServers"},
			StdioOnly: true},
		{Name: "cline", Title: "Cline", File: "cline_mcp_settings.json",
			Docs: "https://docs.cline.bot/mcp/configuring-mcp-servers", Under: []string{"mcpServers"},
			HTTPType: "streamableHttp", Variable: "${env:%s}"},
		{Name: "continue", Title: "Continue", File: ".continue/mcpServers/NAME.yaml, ~/.continue/config.yaml",
			Docs:     "https://docs.continue.dev/customize/deep-dives/mcp",
			Under:    []string{"mcpServers", "experimental"},
			HTTPType: "streamable-http", StdioType: "stdio", Variable: "${{ secrets.%s }}", YAML: true, Listed: true},
		{Name: "cursor", Title: "Cursor", File: ".cursor/mcp.json, ~/.cursor/mcp.json",
			Docs: "https://cursor.com/docs/context/mcp", Under: []string{"mcpServers"},
			Variable: "${env:%s}"},
		{Name: "gemini-cli", Title: "Gemini CLI", File: ".gemini/settings.json, ~/.gemini/settings.json",
			Docs:  "https://github.com/google-gemini/gemini-cli/blob/main/docs/tools/mcp-server.md",
			Under: []string{"mcpServers"}, Dollar: true, URLIsSSE: true,
			URLKey: "httpUrl", Variable: "$%s"},
		{Name: "jetbrains", Title: "JetBrains AI Assistant and Junie", File: ".junie/mcp/mcp.json, AI Assistant's settings",
			Docs: "https://www.jetbrains.com/help/ai-assistant/mcp.html", Under: []string{"mcpServers"}},
		{Name: "librechat", Title: "LibreChat", File: "librechat.yaml",
			Docs:     "https://www.librechat.ai/docs/configuration/librechat_yaml/object_structure/mcp_servers",
			Under:    []string{"mcpServers"},
			HTTPType: "streamable-http", StdioType: "stdio", Variable: "${%s}", YAML: true},
		{Name: "opencode", Title: "opencode", File: "opencode.json",
			Docs: "https://opencode.ai/docs/mcp-servers", Under: []string{"mcp"},
			HTTPType: "remote", StdioType: "local", Variable: "{env:%s}", Line: true, EnvKey: "environment"},
		{Name: "vscode", Title: "VS Code", File: ".vscode/mcp.json",
			Docs:     "https://code.visualstudio.com/docs/copilot/reference/mcp-configuration",
			Under:    []string{"servers", "mcp", "mcpServers"},
			HTTPType: "http", StdioType: "stdio", Variable: "${input:%s}", Inputs: true},
		{Name: "windsurf", Title: "Windsurf", File: "~/.codeium/windsurf/mcp_config.json",
			Docs: "https://docs.windsurf.com/windsurf/cascade/mcp", Under: []string{"mcpServers"},
			URLKey: "serverUrl", Variable: "${env:%s}"},
		{Name: "zed", Title: "Zed", File: "settings.json",
			Docs: "https://zed.dev/docs/ai/mcp", Under: []string{"context_servers"}},
	}
}

// Named returns the client of that name. The error lists all names.
func Named(name string) (Client, error) {
	var known []string
	for _, c := range All() {
		if c.Name == name {
			return c, nil
		}
		known = append(known, c.Name)
	}
	return Client{}, fmt.Errorf("there is no client %q; --client takes %s", name, strings.Join(known, ", "))
}
