package clients_test

import (
	"strings"
	"testing"

	"github.com/catalogd/catalogd/internal/clients"
)

func TestMerge(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		client, file, want, did string
		env                     []string
	}{
		"empty": {"cursor", "{}", "{\n  \"mcpServers\": {\n    \"catalogd\": {\n      \"url\": \"http://h/x\"\n    }\n  }\n}", "added", nil},
		"another server, a comment and a trailing comma": {
			"cursor",
			"// mine\n{\n\t\"a\": 1.50, /* kept */\n\t\"mcpServers\": {\n\t\t\"x\": {\"url\": \"u\"}, // of x\n\t},\n}\n",
			"// mine\n{\n\t\"a\": 1.50, /* kept */\n\t\"mcpServers\": {\n\t\t\"x\": {\"url\": \"u\"}, // of x\n" +
				"\t\t\"catalogd\": {\n\t\t\t\"url\": \"http://h/x\"\n\t\t},\n\t},\n}\n",
			"added", nil,
		},
		"a comment behind the last": {
			"cursor", "{\r\n  \"mcpServers\": {\r\n    \"x\": {} // of x\r\n  }\r\n}",
			"{\r\n  \"mcpServers\": {\r\n    \"x\": {}, // of x\r\n    \"catalogd\": {\r\n      \"url\": \"http://h/x\"\r\n    }\r\n  }\r\n}",
			"added", nil,
		},
		"one line": {
			"cursor", `{"mcpServers": {"x": {}}, "b": "é\u00e9"}`,
			`{"mcpServers": {"x": {}, "catalogd": {"url":"http://h/x"}}, "b": "é\u00e9"}`, "added", nil,
		},
		"one line with blanks and comments": {
			"cursor", "{ \"mcpServers\": { \"x\": {} /* of x */ } }",
			"{ \"mcpServers\": { \"x\": {}, /* of x */ \"catalogd\": {\"url\":\"http://h/x\"} } }", "added", nil,
		},
		"a comment of several lines at the end": {
			"cursor", "{\n  \"mcpServers\": {\n    \"x\": {}, /* of\n  x */ }\n}",
			"{\n  \"mcpServers\": {\n    \"x\": {}, /* of\n  x */\n    \"catalogd\": {\n      \"url\": \"http://h/x\"\n    },\n  }\n}",
			"added", nil,
		},
		"a name with escapes": {
			"cursor", "{\"mcp\\u0053ervers\": {\"catalog\\u0064\": {\"url\": \"old\"}}}",
			"{\"mcp\\u0053ervers\": {\"catalog\\u0064\": {\n  \"url\": \"http://h/x\"\n}}}", "replaced", nil,
		},
		"only a comment": {
			"zed", "{\n  // nothing yet\n}\n",
			"{\n  // nothing yet\n  \"context_servers\": {\n    \"catalogd\": {\n      \"url\": \"http://h/x\"\n    }\n  }\n}\n",
			"added", nil,
		},
		"replaced": {
			"cursor", "{\n    \"mcpServers\": {\n        \"catalogd\": {\"url\": \"old\", /* gone */ \"x\": 1}, // stays\n        \"y\": {}\n    }\n}\n",
			"{\n    \"mcpServers\": {\n        \"catalogd\": {\n            \"url\": \"http://h/x\"\n        }, // stays\n        \"y\": {}\n    }\n}\n",
			"replaced", nil,
		},
		"unchanged": {
			"cursor", "{\"mcpServers\": {\"catalogd\": { \"url\":\n\"http://h/x\" /* as it is */ }}}",
			"{\"mcpServers\": {\"catalogd\": { \"url\":\n\"http://h/x\" /* as it is */ }}}", "unchanged", nil,
		},
		"inputs": {
			"vscode", "{\n  \"servers\": {},\n  \"inputs\": [\n    {\"id\": \"api-token\"}, // asked already\n  ]\n}\n",
			"{\n  \"servers\": {\n    \"catalogd\": {\n      \"type\": \"stdio\",\n      \"command\": \"c\",\n      \"args\": [],\n" +
				"      \"env\": {\n        \"API_TOKEN\": \"${input:api-token}\",\n        \"OTHER\": \"${input:other}\"\n      }\n    }\n  },\n" +
				"  \"inputs\": [\n    {\"id\": \"api-token\"}, // asked already\n    {\n      \"type\": \"promptString\",\n      \"id\": \"other\",\n" +
				"      \"description\": \"OTHER of catalogd\",\n      \"password\": true\n    },\n  ]\n}\n",
			"added", []string{"API_TOKEN", "OTHER"},
		},
	} {
		client, err := clients.Named(c.client)
		if err != nil {
			t.Fatal(err)
		}
		s := clients.Server{Name: "catalogd", URL: "http://h/x"}
		if c.env != nil {
			s = clients.Server{Name: "catalogd", Command: "c", Env: c.env}
		}
		got, did, err := client.Merge([]byte(c.file), s)
		if err != nil || string(got) != c.want || did != c.did {
			t.Errorf("%s: %s, %v\ngot\n%s\nwant %s\n%s", name, did, err, got, c.did, c.want)
			continue
		}
		again, did, err := client.Merge(got, s)
		if err != nil || string(again) != c.want || did != "unchanged" {
			t.Errorf("%s, again: %s, %v\n%s", name, did, err, again)
		}
	}
}

func TestMergeRefuses(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"":                                       "line 1: it is not JSON as an editor takes it",
		"[]":                                     "it is no JSON object",
		"{\n\"a\": hunter2}":                     "line 2: it is not JSON",
		"{\"a\": 1}\n{}":                         "line 2: it is not JSON",
		"{\n/* open":                             "line 2: it is not JSON",
		"{\"a\": 1, \"a\": 2}":                   "line 1: it is not JSON",
		"{\"mcpServers\": []}":                   "mcpServers is no object",
		"mcpServers:\n  a:\n    url: http://h/x": "line 1: it is not JSON",
	} {
		client, err := clients.Named("cursor")
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := client.Merge([]byte(file), clients.Server{Name: "catalogd", URL: "http://h/x"})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") || got != nil {
			t.Errorf("%q: got %q, %v, want %s", file, got, err, want)
		}
	}
	yaml, err := clients.Named("librechat")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := yaml.Merge([]byte("{}"), clients.Server{Name: "catalogd", URL: "http://h/x"}); err == nil {
		t.Error("a YAML file is merged into")
	}
}
