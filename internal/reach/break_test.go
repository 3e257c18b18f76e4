package reach_test

import (
	"testing"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/reach"
)

// waysAroundTheInterpreterGuard are command lines that run code which stands in their arguments, or comes on standard
// input, while they look like an interpreter with a script file.
func waysAroundTheInterpreterGuard(t *testing.T) {
	t.Parallel()
	for _, line := range [][]string{
		{"sh", "+c", "x"}, {"bash", "-u", "+ec", "x"}, {"rbash", "-c", "x"},
		{"sh", "/dev/stdin"}, {"sh", "//dev/./stdin"}, {"sh", "/dev/../dev/stdin"}, {"sh", "../../dev/stdin"},
		{"python3", "/proc/self/fd/0"}, {"python3", "-u", "/dev/fd/0"}, {"python3", "-m", "-"},
		{"deno", "run", "data:text/javascript,x"}, {"deno", "run", "https://evil.example/x.ts"}, {"node", "inspect"},
		{"npx", "-yc", "x"}, {"npx", "--cal=x"}, {"npm", "exec", "--call", "x"}, {"pnpm", "exec", "x"}, {"uv", "run", "x"},
		{"/lib64/ld-linux-x86-64.so.2", "/bin/sh"}, {"taskset", "1", "sh"}, {"ssh", "-oProxyCommand=x", "h"}, {"node", ""}, {"pwsh", "-e", "ZQBjAGgAbwA="},
	} {
		if why := reach.InlineCode(trust.Command{Declared: line[0], Path: "/x", Args: line[1:]}); why == "" {
			t.Errorf("%q passes for a script file", line)
		}
	}
	for _, line := range [][]string{
		{"sh", "-e", "x.sh"}, {"node", "/home/dev/server.js"}, {"node", "fd/server.js"}, {"python3", "-m", "server"},
		{"deno", "run", "./x.ts"}, {"npx", "--no-install", "x"}, {"npm", "run", "x"}, {"uv", "version"}, {"date"},
	} {
		if why := reach.InlineCode(trust.Command{Declared: line[0], Path: "/x", Args: line[1:]}); why != "" {
			t.Errorf("%q is refused: %s", line, why)
		}
	}
}

// maskKnowsHowASecretIsWritten: in a URL, and in JSON of encoders that escape & and those that don't.
func maskKnowsHowASecretIsWritten(t *testing.T) {
	t.Setenv("MASK_WRITTEN", `a"b&c/d e+f`)
	mask := reach.Mask(map[string]reach.Value{"A": {Secret: "env:MASK_WRITTEN"}}, "")
	for _, in := range []string{
		`a"b&c/d e+f`, `a\"b&c/d e+f`, `a\"b\u0026c/d e+f`, `a%22b%26c%2Fd+e%2Bf`, `a%22b&c%2Fd%20e+f`, `YSJiJmMvZCBlK2Y=`,
	} {
		if got := mask.Replace("<" + in + ">"); got != "<***>" {
			t.Errorf("%s is shown as %s", in, got)
		}
	}
}
