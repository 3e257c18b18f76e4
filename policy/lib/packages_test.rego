package catalogd.lib.packages_test

import data.catalogd.lib.packages

digest := "img@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

# Command lines that fetch what they run (threat T23).
test_unpinned[concat(" ", case.line)] if {
	some case in [
		{"line": ["npx", "x"], "want": true},
		{"line": ["npx", "-y", "x"], "want": true},
		{"line": ["npx", "x@latest"], "want": true},
		{"line": ["npx", "x@1"], "want": true},
		{"line": ["npx", "x@^1.2.3"], "want": true},
		{"line": ["npx", "x@1.2.3"], "want": false},
		{"line": ["npx", "-y", "@scope/x@1.2.3", "--flag"], "want": false},
		{"line": ["npx", "@scope/x"], "want": true},
		{"line": ["npx", "--no-install", "x"], "want": false},
		{"line": ["npx", "x", "--no-install"], "want": true},
		{"line": ["npx", "-p", "x@1.2.3", "cmd"], "want": false},
		{"line": ["npx", "--package=x", "cmd@1.2.3"], "want": true},
		{"line": ["npx", "-y"], "want": true},
		{"line": ["npx", "./local"], "want": false},
		{"line": ["npm", "exec", "x"], "want": true},
		{"line": ["npm", "exec", "--", "x@1.2.3"], "want": false},
		{"line": ["npm", "run", "x"], "want": false},
		{"line": ["pnpm", "dlx", "x"], "want": true},
		{"line": ["uvx", "x"], "want": true},
		{"line": ["uvx", "x==1.2"], "want": false},
		{"line": ["uvx", "x@1.2.3"], "want": false},
		{"line": ["uvx", "x@latest"], "want": true},
		{"line": ["uvx", "--from", "x==1.2", "cmd"], "want": false},
		{"line": ["uv", "tool", "run", "x"], "want": true},
		{"line": ["pipx", "run", "x"], "want": true},
		{"line": ["docker", "run", "img"], "want": true},
		{"line": ["docker", "run", "-i", "--rm", "img:1.2"], "want": true},
		{"line": ["docker", "run", "-i", "-e", "KEY", digest], "want": false},
		{"line": ["docker", "run", "img", digest], "want": true},
		{"line": ["docker", "run", "--name", digest, "img"], "want": true},
		{"line": ["podman", "run", digest, "run"], "want": false},
		{"line": ["docker", "ps"], "want": false},
		{"line": ["node", "./x.js"], "want": false},
		{"line": ["date", "run"], "want": false},
	]
	unpinned({"declared": case.line[0], "path": "/x", "args": array.slice(case.line, 1, 99)}) == case.want
}

default unpinned(_) := false

unpinned(c) if packages.unpinned(c)
