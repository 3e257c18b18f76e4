package importer_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cuelang.org/go/cue/format"

	"github.com/catalogd/catalogd/internal/importer"
)

func checkWritten(t *testing.T, got *importer.Import, secret string) {
	t.Helper()
	again, err := format.Source(got.CUE)
	if err != nil {
		t.Fatalf("%v\n%s", err, got.CUE)
	}
	if string(again) != string(got.CUE) {
		t.Errorf("cue fmt would change it to\n%s\nfrom\n%s", again, got.CUE)
	}
	if strings.Contains(string(got.CUE), secret) {
		t.Errorf("a secret was written:\n%s", got.CUE)
	}
	for _, n := range append(got.Refused, got.Notes...) {
		if strings.Contains(n.String(), secret) {
			t.Errorf("a secret is in a note: %s", n)
		}
	}
}

// TestSecrets plants hunter2 wherever a file may hold a secret: it is neither written nor said, and its place
// says what to do.
func TestSecrets(t *testing.T) {
	for name, c := range map[string]struct{ server, want, note string }{
		"env by name":          {`"command": "x", "env": {"DB_PASSWORD": "hunter2"}`, `DB_PASSWORD: secret: "env:DB_PASSWORD"`, "a literal secret became"},
		"env by shape":         {`"command": "x", "env": {"WHO": "ghp_hunter2hunter2"}`, `WHO: secret: "env:WHO"`, "a literal secret became"},
		"env, connection":      {`"command": "x", "env": {"DB": "Server=a;Password=hunter2"}`, `secret: "env:DB"`, "a literal secret became"},
		"env, URL with user":   {`"command": "x", "env": {"DB": "postgres://u:hunter2@db/x"}`, `secret: "env:DB"`, "a literal secret became"},
		"env, default":         {`"command": "x", "env": {"TOKEN": "${MY_TOKEN:-hunter2}"}`, `TOKEN: secret: "env:MY_TOKEN"`, "default of the variable MY_TOKEN was left out"},
		"env, joined":          {`"command": "x", "env": {"TOKEN": "hunter2-${A}-${B}"}`, `secret: "env:S_TOKEN"`, "a text made of references"},
		"header":               {`"url": "https://e.example.com", "headers": {"X-Api-Key": "hunter2"}`, `secret: "env:S_X_API_KEY"`, "a literal secret became"},
		"header, bearer":       {`"url": "https://e.example.com", "headers": {"Authorization": "Bearer hunter2"}`, `{secret: "env:S_AUTHORIZATION", prefix: "Bearer "}`, "a literal secret became"},
		"argument with =":      {`"command": "x", "args": ["--api-key=hunter2"]`, `error("the value of --api-key was a secret`, "the value of --api-key"},
		"argument behind flag": {`"command": "x", "args": ["--token", "hunter2"]`, `error("the value of --token was a secret`, "the value of --token"},
		"argument, variable":   {`"command": "docker", "args": ["run", "-e", "API_KEY=hunter2"]`, `error("the value of API_KEY was a secret`, "the value of API_KEY"},
		"argument, header":     {`"command": "x", "args": ["--header", "Authorization: Bearer hunter2"]`, "error(", "a literal secret"},
		"argument, URL":        {`"command": "x", "args": ["postgres://u:hunter2@db/x"]`, `error("the user information of a URL`, "the user information"},
		"argument, default":    {`"command": "x", "args": ["--token", "${T:-hunter2}"]`, `error("the variable T stood here`, "can't be referred to here"},
		"URL, user":            {`"url": "https://u:hunter2@e.example.com/mcp"`, `Authorization: {secret: "env:S_BASIC", prefix: "Basic "}`, "base64 form"},
		"URL, query":           {`"url": "https://e.example.com/mcp?apiKey=hunter2"`, `error("the query parameter apiKey of a URL was a secret`, "the query parameter apiKey"},
		"URL, path":            {`"url": "https://e.example.com/s/hunter2hunter2hunter2/mcp"`, `error("the path of a URL was a secret`, "the path"},
		"field left out":       {`"command": "x", "auth": {"CLIENT_SECRET": "hunter2"}`, `command: "x"`, "left out"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := importer.Read([]byte(`{"mcpServers": {"s": {`+c.server+`}}}`), importer.Config{File: "f.json"})
			if err != nil {
				t.Fatal(err)
			}
			checkWritten(t, got, "hunter2")
			if !strings.Contains(string(got.CUE), c.want) {
				t.Errorf("no %s in\n%s", c.want, got.CUE)
			}
			if len(got.Notes) == 0 || !strings.Contains(got.Notes[0].String(), c.note) {
				t.Errorf("notes %v, want %q", got.Notes, c.note)
			}
		})
	}
}

// TestReferences translates what points elsewhere.
func TestReferences(t *testing.T) {
	for name, c := range map[string]struct{ file, want string }{
		"variable":            {`{"mcpServers": {"s": {"command": "x", "env": {"A": "${B}"}}}}`, `A: secret: "env:B"`},
		"env: variable":       {`{"mcpServers": {"s": {"command": "x", "env": {"A": "${env:B}"}}}}`, `A: secret: "env:B"`},
		"Gemini's":            {`{"mcpServers": {"s": {"command": "x", "env": {"A": "$B"}}}}`, `A: secret: "env:B"`},
		"opencode's":          {`{"mcp": {"s": {"type": "local", "command": ["x", "y"], "environment": {"A": "{env:B}"}}}}`, `A: secret: "env:B"`},
		"opencode's command":  {`{"mcp": {"s": {"type": "local", "command": ["x", "y"]}}}`, `args: ["y"]`},
		"default":             {`{"mcpServers": {"s": {"command": "x", "env": {"LEVEL": "${L:-info}"}}}}`, `LEVEL: "info"`},
		"default, shell's":    {`{"mcpServers": {"s": {"command": "x", "env": {"LEVEL": "${L-info}"}}}}`, `LEVEL: "info"`},
		"default, assigned":   {`{"mcpServers": {"s": {"command": "x", "env": {"LEVEL": "${env:L:=info}"}}}}`, `LEVEL: "info"`},
		"message":             {`{"mcpServers": {"s": {"command": "x", "env": {"LEVEL": "${L:?set it}"}}}}`, `LEVEL: secret: "env:L"`},
		"empty default":       {`{"mcpServers": {"s": {"command": "x", "env": {"LEVEL": "${L:-}"}}}}`, `LEVEL: secret: "env:L"`},
		"empty, shell's":      {`{"mcpServers": {"s": {"command": "x", "env": {"LEVEL": "${L-}"}}}}`, `LEVEL: secret: "env:L"`},
		"empty, secret":       {`{"mcpServers": {"s": {"command": "x", "env": {"A": "${X_SECRET:-}"}}}}`, `A: secret: "env:X_SECRET"`},
		"empty, by the key":   {`{"mcpServers": {"s": {"command": "x", "env": {"API_KEY": "${K:-}"}}}}`, `API_KEY: secret: "env:K"`},
		"empty, env:":         {`{"mcpServers": {"s": {"command": "x", "env": {"API_KEY": "${env:K:-}"}}}}`, `API_KEY: secret: "env:K"`},
		"default, secret":     {`{"mcpServers": {"s": {"command": "x", "env": {"A": "${X_SECRET:-none}"}}}}`, `A: secret: "env:X_SECRET"`},
		"empty, header":       {`{"mcpServers": {"s": {"url": "https://e.example.com/mcp", "headers": {"Authorization": "Bearer ${T:-}"}}}}`, `Authorization: {secret: "env:T", prefix: "Bearer "}`},
		"empty, header alone": {`{"mcpServers": {"s": {"url": "https://e.example.com/mcp", "headers": {"X-Api-Key": "${X_SECRET:-}"}}}}`, `"X-Api-Key": secret: "env:X_SECRET"`},
		"empty, option":       {`{"mcpServers": {"s": {"command": "x", "args": ["--token", "${T:-}"]}}}`, `error("the variable T stood here`},
		"empty, option =":     {`{"mcpServers": {"s": {"command": "x", "args": ["--token=${T:-}"]}}}`, `error("the variable T stood here`},
		"empty, argument":     {`{"mcpServers": {"s": {"command": "x", "args": ["${X_SECRET:-}"]}}}`, `error("the variable X_SECRET stood here`},
		"empty, URL":          {`{"mcpServers": {"s": {"url": "https://e.example.com/mcp?api_key=${K:-}"}}}`, `error("the variable K stood here`},
		"empty, path of URL":  {`{"mcpServers": {"s": {"url": "https://e.example.com/${PREFIX:-}mcp"}}}`, `url: "https://e.example.com/mcp"`},
		"default in argument": {`{"mcpServers": {"s": {"command": "x", "args": ["${L:-info}"]}}}`, `args: ["info"]`},
		"input":               {`{"servers": {"s": {"command": "x", "env": {"A": "${input:my-key}"}}}}`, `A: secret: "env:MY_KEY"`},
		"editor's settings":   {`{"mcp": {"servers": {"s": {"command": "x"}}, "inputs": []}}`, `command: "x"`},
		"Zed's":               {`{"context_servers": {"s": {"source": "custom", "command": "x"}}}`, `command: "x"`},
		"Windsurf's":          {`{"mcpServers": {"s": {"serverUrl": "https://e.example.com/mcp", "disabledTools": ["a"]}}}`, `except: ["a"]`},
		"folder":              {`{"servers": {"s": {"command": "x", "args": ["${workspaceFolder}/a"]}}}`, `cwd: "."`},
		"argument":            {`{"mcpServers": {"s": {"command": "x", "args": ["--root", "${ROOT}"]}}}`, `error("the variable ROOT stood here`},
		"home, ~":             {`{"servers": {"s": {"command": "x", "args": ["~/a"]}}}`, `error("~ stood here`},
		"home, option":        {`{"servers": {"s": {"command": "x", "args": ["--root=~/a"]}}}`, `error("~ stood here`},
		"home, command":       {`{"servers": {"s": {"command": "~/bin/x"}}}`, `command: error("~ stood here`},
		"home, value":         {`{"servers": {"s": {"command": "x", "env": {"ROOT": "~/a"}}}}`, `ROOT: secret: "env:S_ROOT"`},
		"home, $HOME":         {`{"servers": {"s": {"command": "x", "args": ["$HOME/a"]}}}`, `error("the variable HOME stood here`},
		"home, ${env:HOME}":   {`{"servers": {"s": {"command": "x", "args": ["${env:HOME}/a"]}}}`, `error("the variable HOME stood here`},
		"Windows'":            {`{"servers": {"s": {"command": "x", "args": ["%APPDATA%\\a"]}}}`, `error("the variable APPDATA stood here`},
		"Windows', value":     {`{"servers": {"s": {"command": "x", "env": {"A": "%APPDATA%"}}}}`, `A: secret: "env:APPDATA"`},
		"escapes in a URL":    {`{"servers": {"s": {"url": "https://e.example.com/a%41Bc%20d"}}}`, `url: "https://e.example.com/a%41Bc%20d"`},
		"$VAR elsewhere":      {`{"servers": {"s": {"command": "jq", "args": ["$x + 1"]}}}`, `args: ["$x + 1"]`},
		"$VAR of Gemini":      {`{"mcpServers": {"s": {"command": "x", "args": ["-r", "$ROOT/a"], "trust": true}}}`, `error("the variable ROOT stood here`},
		"Continue's":          {"mcpServers:\n- name: s\n  command: x\n  env: {A: '${{ secrets.B }}'}", `A: secret: "env:B"`},
		"LibreChat's":         {"mcpServers:\n  s: {url: 'https://e.example.com/mcp', headers: {X-A: '{{USER_B}}'}}", `"X-A": secret: "env:USER_B"`},
		"nested transport":    {`{"mcpServers": {"s": {"transport": {"type": "http", "url": "https://e.example.com/mcp"}}}}`, `url: "https://e.example.com/mcp"`},
		"path by digest":      {`{"mcpServers": {"s": {"command": "/store/3m0z6vqk1x9yab2cd4ef/bin/s"}}}`, `command: "/store/3m0z6vqk1x9yab2cd4ef/bin/s"`},
		"home":                {`{"servers": {"s": {"command": "x", "args": ["${userHome}/a"]}}}`, `error("the editor's userHome stood here`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := importer.Read([]byte(c.file), importer.Config{File: "f.json"})
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(got.CUE), c.want) {
				t.Errorf("no %s in\n%s", c.want, got.CUE)
			}
		})
	}
}

// TestVariables: one name never stands for two secrets.
func TestVariables(t *testing.T) {
	got, err := importer.Read([]byte(`{"mcpServers": {
	"a": {"command": "x", "env": {"TOKEN": "one"}},
	"b": {"command": "x", "env": {"TOKEN": "two"}},
	"c": {"command": "x", "env": {"TOKEN": "one", "KEY": "${OTHER_KEY}"}},
	"d": {"command": "x", "env": {"OTHER_KEY": "three"}}
}}`), importer.Config{File: "f.json"})
	if err != nil {
		t.Fatal(err)
	}
	for want, n := range map[string]int{`TOKEN: secret: "env:TOKEN"`: 2, `TOKEN: secret: "env:B_TOKEN"`: 1, `KEY: secret: "env:OTHER_KEY"`: 1, `OTHER_KEY: secret: "env:D_OTHER_KEY"`: 1} {
		if have := strings.Count(strings.Join(strings.Fields(string(got.CUE)), " "), want); have != n {
			t.Errorf("%s stands %d times, want %d, in\n%s", want, have, n, got.CUE)
		}
	}
}

// TestOddServer: a server that can't be imported costs only itself, and only if it was asked for.
func TestOddServer(t *testing.T) {
	file := []byte(`{"mcpServers": {"odd": {"type": "ws", "url": "wss://e.example.com"}, "a": 1, "good": {"command": "x"}, "also": {"url": "https://e.example.com/mcp"}}}`)
	for _, c := range []struct {
		names, servers []string
		refused        int
	}{
		{nil, []string{"good", "also"}, 2},
		{[]string{"good"}, []string{"good"}, 0},
		{[]string{"odd", "good"}, []string{"good"}, 1},
	} {
		got, err := importer.Read(file, importer.Config{File: "f.json", Names: c.names})
		if err != nil {
			t.Fatal(err)
		}
		var servers []string
		for _, s := range got.Servers {
			servers = append(servers, s.Name)
		}
		if !slices.Equal(servers, c.servers) || len(got.Refused) != c.refused {
			t.Errorf("with names %v: got servers %v and refused %v, want %v and %d", c.names, servers, got.Refused, c.servers, c.refused)
		}
	}
}

// TestRefused: what can't be imported is said at its place, all of it at once.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct{ file, want string }{
		"empty":            {"", "f.json:1:1: the file is empty; a client's configuration is a JSON object"},
		"only a comment":   {"// x\n", "f.json:2:1: the file is empty; a client's configuration is a JSON object"},
		"not JSON":         {"{\n  servers: {}}", "f.json:2:3: not JSON: a key in double quotes, or }, is expected here"},
		"cut off":          {`{"servers": {"a": {"command": "hunter2`, "f.json:1:31: not JSON: the string that begins here is not closed on its line"},
		"two commas":       {`{"servers": {},,}`, "f.json:1:16: not JSON: a key in double quotes, or }, is expected here"},
		"no value":         {`{"servers": hunter2}`, "f.json:1:13: not JSON: a value is expected here"},
		"more behind":      {`{} {}`, "f.json:1:4: not JSON: the value ends before this, and nothing may follow it"},
		"comment":          {"{ /* }", "f.json:1:3: not JSON: the comment that begins here is not closed"},
		"escape":           {`{"a\q": 1}`, "f.json:1:2: not JSON: the string that begins here contains an escape or a control character that JSON does not know"},
		"not UTF-8":        {"{\n\"\xff\": 1}", "f.json:2:2: the file is not UTF-8 here"},
		"duplicate":        {"{\"servers\": {\"a\": {},\n\"a\": {}}}", `f.json:2:1: duplicate key "a", first at line 1; remove one`},
		"deep":             {strings.Repeat("[", 70), "f.json:1:65: values are nested deeper than 64 here"},
		"a list":           {"[]", "f.json:1:1: a client's configuration is an object, and this is a list"},
		"no servers":       {`{"a": 1}`, "f.json:1:1: there are no servers here: they must be under mcpServers, servers, mcp or context_servers, by client, or be objects with a command or url at the top"},
		"all off":          {`{"servers": {"a": {"command": "x", "disabled": true}}}`, "f.json:1:1: every server here is switched off; name those that are wanted on the command line"},
		"servers, number":  {`{"servers": 1}`, "f.json:1:13: servers: the servers are an object of them by name, or a list of them, and this is a number"},
		"server, text":     {`{"servers": {"a": "hunter2"}}`, "f.json:1:19: servers.a: a server is an object, and this is a string"},
		"neither":          {`{"servers": {"a": {}}}`, "f.json:1:19: servers.a: a server has a command or a URL (command, url, serverUrl or httpUrl), and this one has neither"},
		"both":             {`{"servers": {"a": {"command": "x", "url": "y"}}}`, "f.json:1:19: servers.a: a server has either a command or a URL, and this one has both"},
		"type":             {`{"servers": {"a": {"url": "https://e.example.com", "type": "ws"}}}`, "f.json:1:60: servers.a.type: catalogd does not speak WebSocket; see whether the server has a URL of streamable HTTP too"},
		"socket URL":       {`{"mcpServers": {"a": {"url": "wss://e.example.com"}}}`, "f.json:1:30: mcpServers.a.url: catalogd does not speak WebSocket; see whether the server has a URL of streamable HTTP too"},
		"pipe":             {`{"servers": {"a": {"url": "unix:///tmp/a.sock"}}}`, "f.json:1:27: servers.a.url: the URL can't be reached: it must be http:// or https://, with a host and without a fragment"},
		"YAML":             {"a: [\nb: hunter2", "f.json:2:1: neither JSON, which begins with {, nor valid YAML; fix the syntax here or just above"},
		"YAML, text":       {"hunter2", "f.json:1:1: a client's configuration is an object, and this is a string"},
		"YAML, duplicate":  {"mcpServers:\n  a: {}\n  a: {}", `f.json:3:3: duplicate key "a", first at line 2; remove one`},
		"YAML, merge":      {"a: &a {b: c}\nd:\n  <<: *a", "f.json:3:3: merge keys (<<) are not read; write the fields out"},
		"YAML, key":        {"? [a]\n: b", "f.json:1:3: a key must be a plain text"},
		"YAML, documents":  {"a: b\n---\nc: d", "f.json:1:1: the file has several YAML documents; keep one"},
		"YAML, comments":   {"# a\n", "f.json:1:1: the file has only comments"},
		"YAML, itself":     {"a: &a [*a]", "f.json:1:4: values are nested deeper than 64 here"},
		"YAML, aliases":    {"a: &a [1,1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]", "f.json:1:24: the file has more than 100000 values, aliases counted as what they stand for"},
		"args and env too": {`{"servers": {"a": {"command": "x", "args": [1], "env": ["hunter2"]}}}`, "f.json:1:45: servers.a.args.0: it must be a string, and is a number\nf.json:1:56: servers.a.env: it must be an object of strings, and is a list"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := importer.Read([]byte(c.file), importer.Config{File: "f.json"})
			var refused *importer.RefusedError
			if !errors.As(err, &refused) || err.Error() != c.want {
				t.Errorf("%v\nwant\n%s", err, c.want)
			}
		})
	}
}

// FuzzImport: whatever the text is, it is refused at a place or becomes formatted CUE.
func FuzzImport(f *testing.F) {
	files, err := filepath.Glob("testdata/*.*")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"mcpServers": {"\u0000 é\n": {"command": "a\nb\\(c)", "args": ["\"\"\"", "${", "${}", "${:-}", "$"], "env": {"": "=", "_a": "${input:}"}, "cwd": "*/"}}}`))
	f.Add([]byte(`{"mcp": {"if": {"url": "http://[::1]:0/?a=${b:-c}#", "headers": {"A": "Bearer ", "null": "Bearer ${A}"}}}}`))
	f.Add([]byte("a: &a {command: x}\nmcpServers: {b: *a, c: [*a], ? [d] : e, f: %A_B%, g: ~/h}"))
	f.Add([]byte(`{"a": {"command": "~/x", "args": ["%HOME%", "{{A_B}}", "$HOME/x"]}, "b": {"url": "wss://a/b"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := importer.Read(data, importer.Config{File: "f.json"})
		if err != nil {
			var refused *importer.RefusedError
			if !errors.As(err, &refused) || len(refused.Faults) == 0 {
				t.Fatalf("neither read nor refused: %v", err)
			}
			return
		}
		again, err := format.Source(got.CUE)
		if err != nil || string(again) != string(got.CUE) {
			t.Fatalf("not formatted (%v):\n%s", err, got.CUE)
		}
	})
}
