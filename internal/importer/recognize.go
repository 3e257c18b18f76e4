package importer

import (
	"path"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/internal/clients"
)

// sign is a trait by which the file of a client is recognized.
type sign struct {
	client, trait string
	is            func(r *reading) bool
}

// signs are in the order in which they are asked; the first that fits decides. Clients of the same form can't
// be told apart by it: the last rows name the one that is likeliest, and --client names another.
var signs = []sign{
	{"zed", "context_servers", has("context_servers")},
	{"vscode", "servers", has("servers")},
	{"vscode", "mcp.servers", func(r *reading) bool { return r.root.get("mcp").get("servers") != nil }},
	{"opencode", "mcp", func(r *reading) bool { return r.root.get("mcp") != nil && opencode(r.root.get("mcp")) }},
	{"claude-code", "projects", has("projects")},
	{"continue", "experimental.modelContextProtocolServers", has("experimental")},
	{"continue", "mcpServers, a list", func(r *reading) bool { return isList(r.root.get("mcpServers")) }},
	{"continue", "${{ secrets.NAME }}", says("${{ secrets.", "${{ inputs.")},
	{"librechat", "mcpServers in YAML", func(r *reading) bool { return r.yaml }},
	{"claude-code", "servers at the top", func(r *reading) bool { return r.root.get("mcpServers") == nil }},
	{"gemini-cli", "httpUrl", field("httpUrl")},
	{"gemini-cli", "trust, includeTools or excludeTools", field("trust", "includeTools", "excludeTools")},
	{"windsurf", "serverUrl or disabledTools", field("serverUrl", "disabledTools")},
	{"windsurf", "${file:PATH}", says("${file:/", "${file:~")},
	{"cline", "autoApprove or alwaysAllow", field("autoApprove", "alwaysAllow")},
	{"cline", "type streamableHttp", says("streamableHttp")},
	{"cursor", "envFile", field("envFile")},
	{"cursor", "${env:NAME}, ${userHome} or ${workspaceFolder}", says("${env:", "${userHome}", "${workspaceFolder")},
	{"claude-desktop", "globalShortcut or preferences", has("globalShortcut", "preferences")},
	{"claude-code", "type", field("type", "headersHelper", "oauth")},
	{"claude-code", "${NAME}", says("${")},
	{"claude-code", "its name", func(r *reading) bool { return path.Base(r.file) == ".mcp.json" }},
	{"claude-desktop", "its name", func(r *reading) bool { return path.Base(r.file) == "claude_desktop_config.json" }},
	{"gemini-cli", "$NAME", func(r *reading) bool { return r.root.get("mcpServers").anyText(bare.MatchString) }},
	{"cursor", "mcpServers with a url", field("url")},
	{"claude-desktop", anyClient, func(*reading) bool { return true }},
}

// anyClient is the trait of a file that any client with mcpServers may have.
const anyClient = "mcpServers with commands"

// has matches a file with one of the keys at its top.
func has(keys ...string) func(*reading) bool {
	return func(r *reading) bool {
		return slices.ContainsFunc(keys, func(key string) bool { return r.root.get(key) != nil })
	}
}

// field matches a file in which a server has one of the fields.
func field(keys ...string) func(*reading) bool {
	return func(r *reading) bool {
		return slices.ContainsFunc(r.found, func(s foundServer) bool {
			return slices.ContainsFunc(keys, func(key string) bool { return s.value.get(key) != nil })
		})
	}
}

// says matches a file in which a server has a string with one of the parts.
func says(parts ...string) func(*reading) bool {
	return func(r *reading) bool {
		return slices.ContainsFunc(r.found, func(s foundServer) bool {
			return s.value.anyText(func(text string) bool {
				return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
			})
		})
	}
}

func isList(v *value) bool { return v != nil && v.kind == list }

// recognize sets the client whose form the file has, if none was chosen, and returns the trait that decided.
func (r *reading) recognize() (trait string, err error) {
	if r.client.Name == "" {
		at := slices.IndexFunc(signs, func(s sign) bool { return s.is(r) })
		trait = signs[at].trait
		if r.client, err = clients.Named(signs[at].client); err != nil {
			return "", err
		}
	}
	r.dollar = r.client.Dollar
	return trait, nil
}
