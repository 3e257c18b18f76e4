package loader_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
)

// TestLiteralSecrets writes a token in every way in which a file can, beside an error whose message would
// quote it: it is said where, and what it is, and nothing else is.
func TestLiteralSecrets(t *testing.T) {
	t.Parallel()
	secret := "ghp_" + "Z9kQ2mW8xR4tLp7vNc3sYb6dHf1jGa5eUo0i"
	for name, line := range map[string]string{
		"a text":                `_x: "SECRET" & "other"`,
		"a text of lines":       "_x: \"\"\"\n\tSECRET\n\t\"\"\" & 3",
		"raw":                   `_x: #"SECRET"# & 3`,
		"bytes":                 `_x: 'SECRET' & 3`,
		"escaped":               `_x: "gh\u0070_Z9kQ2mW8xR4tLp7vNc3sYb6dHf1jGa5eUo0i" & 3`,
		"in two parts":          `_x: ("gh" + "p_Z9kQ2mW8xR4tLp7v" + "Nc3sYb6dHf1jGa5eUo0i") & 3`,
		"put in":                `_x: "Bearer \("SECRET")" & 3`,
		"around what is put in": "_y: \"y\"\n_x: \"SECRET \\(_y)\" & 3",
		"a default":             `_x: *"SECRET" | string | 3`,
		"a list":                `_x: ["a", ["SECRET"]] & 3`,
		"a call":                "import \"strings\"\n_x: strings.ToLower(\"SECRET\") & 3",
		"a label":               `_x: "SECRET": {} & 3`,
		"below a label":         `_x: "SECRET": "SECRET" & 3`,
		"let":                   "let x = \"SECRET\"\n_y: x & 3",
		"a comprehension":       `_x: {for k in ["SECRET"] {(k): 3 & 4}}`,
		"a condition":           `_x: {if "SECRET" == "b" {a: 1}}`,
		"a comment":             "// SECRET\n_x: 1 & 3",
		"a comment behind":      "_x: 1 & 3 // SECRET",
		"an attribute":          `_x: 1 @note("SECRET")`,
		"a pattern":             `_x: [=~"SECRET"]: 3`,
		"broken":                `_x: "SECRET`,
		"broken behind":         "_x: \"SECRET\"\n_y: )",
		"found by a name":       `tools: t: binding: http: {url: "https://e.example.com", headers: Authorization: "Basic " + "YXBwOmh1bnRlcg==" & 3}`,
		"computed in a program": "import \"strings\"\n" + `tools: t: {description: "d", effect: "read", binding: http: {` +
			`url: "https://e.example.com", output: "json", select: strings.Join(["\"gh", "p_Z9kQ2mW8xR4tLp7v", "Nc3sYb6dHf1jGa5eUo0i\""], "")}}`,
		"an argument":           `tools: t: binding: exec: {command: "a", argv: ["--password", "Zk9Qm2xW8r"] & ["b"]}`,
		"an argument in short":  `tools: t: binding: exec: ["a", "--password", "Zk9Qm2xW8r"] & ["a", "b", "c"]`,
		"an unused file":        "@if(never)\n_x: \"SECRET\"",
		"a field of no catalog": `other: "SECRET"`,
		"an expression":         `_password: =~"SECRET" & 3`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.ReplaceAll(line, "SECRET", secret)
			head, rest := "package catalog\n\n", text
			if strings.HasPrefix(text, "@if") {
				attribute, after, _ := strings.Cut(text, "\n")
				head, rest = attribute+"\n\n"+head, after
			}
			files := fstest.MapFS{
				"schema.cue":         {Data: schema(t)},
				"cue.mod/module.cue": {Data: []byte("module: \"example.com/catalog@v0\"\nlanguage: version: \"v0.17.0\"\n")},
				"catalog/a.cue":      {Data: []byte(head + rest + "\n")},
			}
			snap, problems := loader.Tree{FS: files}.Snapshot(t.Context())
			if problems.HasErrors() {
				t.Fatal(problems.Err())
			}
			build, problems := compiler(t).Compile(t.Context(), snap)
			if build != nil || len(problems) == 0 {
				t.Fatalf("build %v, %d problems", build, len(problems))
			}
			for _, p := range problems {
				if p.Code != problem.LiteralSecret || p.File != "catalog/a.cue" || p.Line < 3 {
					t.Errorf("got %v", p)
				}
				for _, hidden := range []string{secret[4:12], "YXBwOmh1", "Zk9Qm2"} {
					if strings.Contains(p.String(), hidden) {
						t.Errorf("the secret is in %v", p)
					}
				}
			}
		})
	}
}

// TestNoLiteralSecrets: what looks like one to a hurried reader and is none.
func TestNoLiteralSecrets(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{
		"schema.cue":         {Data: schema(t)},
		"cue.mod/module.cue": {Data: []byte("module: \"example.com/catalog@v0\"\nlanguage: version: \"v0.17.0\"\n")},
		"catalog/a.cue": {Data: []byte(`package catalog

// Send Authorization: Bearer TOKEN, with a token such as ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx.
tools: sign_in: {
	description: "Sign in. The token is 40 characters long, such as ghp_...; the password has 8 to 64."
	effect:      "read"
	args: {
		password!:   =~"^[a-z0-9!]{8,64}$"
		token?:      =~"^gh[pos]_[A-Za-z0-9]+$"
		secret:      *"none" | string
		api_key:     *"" | string
		page_token?: string
		auth:        "basic" | *"oauth2"
	}
	examples: [{args: {password: "your-password1", token: "ghp_YOUR_TOKEN"}, rejected: "/token"}]
	binding: http: {
		url: "https://api.example.com/v1/sign-in{?auth}"
		method: "GET"
		headers: {
			Authorization: {secret: "env:API_TOKEN", prefix: "Bearer "}
			"X-Api-Key": secret: "file:keys/api.key"
			Accept:       "application/vnd.github.v3+json"
		}
	}
}
servers: gh: transport: stdio: {
	command: "docker"
	args: ["run", "-i", "-e", "GITHUB_TOKEN", "ghcr.io/github/server@sha256:3f9a1c7e5b2d80466fd1a93e7c25b8f04e6d1a2b9c7f3058e4d6b1a09f2c7e53"]
	env: {GITHUB_TOKEN: secret: "env:GITHUB_TOKEN", TOKEN_FILE: "/run/secrets/token1"}
}
branches: default: {}
`)},
	}
	snap, problems := loader.Tree{FS: files}.Snapshot(t.Context())
	if problems.HasErrors() {
		t.Fatal(problems.Err())
	}
	if _, problems = compiler(t).Compile(t.Context(), snap); problems.HasErrors() {
		t.Error(problems.Err())
	}
}
