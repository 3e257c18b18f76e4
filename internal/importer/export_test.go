package importer_test

import (
	"strings"
	"testing"

	"github.com/catalogd/catalogd/internal/clients"
	"github.com/catalogd/catalogd/internal/importer"
)

// TestRoundTrip imports what is exported for each client, and gets the server that was exported, whatever the
// client. The client is recognized wherever its form is no other's.
func TestRoundTrip(t *testing.T) {
	// shared are the clients whose form, with one such server, is that of another.
	shared := map[string]string{
		"jetbrains http": "cursor", "cline stdio": "claude-desktop", "cursor stdio": "claude-desktop",
		"gemini-cli stdio": "claude-desktop", "jetbrains stdio": "claude-desktop", "windsurf stdio": "claude-desktop",
	}
	const url, command = `url: "http://127.0.0.1:8420/branches/default/mcp"`, `command: "/opt/catalogd"
		args: ["stdio", "-C", "/srv/it's here", "--branch", "default"]`
	for _, way := range []struct {
		name   string
		server clients.Server
		want   string
	}{
		{"http", clients.Server{URL: "http://127.0.0.1:8420/branches/default/mcp"}, url},
		{"token", clients.Server{URL: "http://127.0.0.1:8420/branches/default/mcp", Token: "CATALOGD_TOKEN"},
			url + "\n\t\theaders: {\n\t\t\tAuthorization: {secret: \"env:CATALOGD_TOKEN\", prefix: \"Bearer \"}\n\t\t}"},
		{"stdio", clients.Server{Command: "/opt/catalogd", Args: []string{"stdio", "-C", "/srv/it's here", "--branch", "default"}}, command},
	} {
		for _, c := range clients.All() {
			t.Run(c.Name+" "+way.name, func(t *testing.T) {
				way.server.Name = "catalogd"
				entry, err := c.Entry(way.server)
				if way.server.URL != "" && (c.StdioOnly || way.server.Token != "" && c.Variable == "") {
					if err == nil || !strings.Contains(err.Error(), "use --stdio") {
						t.Fatalf("got error %v, want one that advises --stdio", err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				for _, as := range []string{"", c.Name} {
					got, err := importer.Read(entry.Config, importer.Config{File: "f", Client: as})
					if err != nil {
						t.Fatalf("%v\n%s", err, entry.Config)
					}
					declared, _, _ := strings.Cut(string(got.CUE), "\n\tprefix:")
					if _, declared, _ = strings.Cut(declared, "transport: "); !strings.Contains(declared, way.want+"\n\t}") {
						t.Errorf("got\n%s\nwant %s, from\n%s", declared, way.want, entry.Config)
					}
					if len(got.Refused) > 0 || len(got.Servers) != 1 || got.Servers[0].Name != "catalogd" || got.Servers[0].Holes > 0 {
						t.Errorf("got servers %v and refused %v, want catalogd alone", got.Servers, got.Refused)
					}
					want := c.Name
					if other := shared[c.Name+" "+way.name]; as == "" && other != "" {
						want = other
					}
					if got.Client != want {
						t.Errorf("recognized as %s, want %s, from\n%s", got.Client, want, entry.Config)
					}
				}
			})
		}
	}
}
