package egress_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/decision/trusttest"
	"github.com/catalogd/catalogd/internal/egress"
	"github.com/catalogd/catalogd/internal/secret"
)

// env is a target that prints its environment.
func env(t *testing.T, declared ...string) trust.Target {
	t.Helper()
	path, err := egress.Resolve("env", "")
	if err != nil {
		t.Fatal(err)
	}
	return trust.Target{Kind: trust.Exec, Command: &trust.Command{Declared: "env", Path: path, Args: []string{"-0"}, Env: declared}}
}

// given is the environment that the target's child prints.
func given(t *testing.T, target trust.Target, terms trust.Terms, c egress.Command) map[string]string {
	t.Helper()
	terms.Interpreter = true // env runs commands
	out := run(t, target, terms, c, "")
	vars := map[string]string{}
	for item := range strings.SplitSeq(strings.TrimSuffix(string(out.Stdout), "\x00"), "\x00") {
		name, value, _ := strings.Cut(item, "=")
		if _, twice := vars[name]; twice {
			t.Errorf("%s is given twice", name)
		}
		vars[name] = value
	}
	return vars
}

// clearEnvironment takes every variable away until the test ends.
func clearEnvironment(t *testing.T) {
	for _, variable := range os.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		if os.Unsetenv(name) == nil {
			t.Cleanup(func() { os.Setenv(name, value) })
		}
	}
}

// A child is given the base, and of all that the daemon has and the declaration sets what the trust entry
// names; a value that the entry fixes is over both.
func environmentIsGranted(t *testing.T) {
	env(t) // while there is a PATH
	target := env(t)
	clearEnvironment(t)
	daemon := map[string]string{
		"PATH": "/usr/bin:relative::/bin:./x", "LANG": "C.UTF-8", "LC_ALL": "C", "LC_TIME": "C", "TZ": "UTC", "TMPDIR": t.TempDir(),
		"HOME": "/home/daemon", "APP_TOKEN": "daemon", "EMPTY": "",
	}
	for _, name := range []string{
		"LC_SECRET", "LD_PRELOAD_X", "GIT_CONFIG_GLOBAL", "GIT_DIR", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "NODE_OPTIONS", "npm_config_script_shell", "BASH_ENV",
		"ENV", "HTTPS_PROXY", "SSH_AUTH_SOCK", "CURL_HOME", "PSQLRC", "DOCKER_CONFIG", "AWS_SECRET_ACCESS_KEY", "PYTHONPATH", "USER", "SHELL", "PWD", "_", "x-y",
	} {
		daemon[name] = "leak"
	}
	for name, value := range daemon {
		t.Setenv(name, value)
	}
	base := map[string]string{"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "LC_ALL": "C", "LC_TIME": "C", "TZ": "UTC", "TMPDIR": daemon["TMPDIR"]}
	for _, tt := range []struct {
		name     string
		declared map[string]string
		env      []string
		fixed    map[string]string
		want     map[string]string // beside the base
		refused  string
	}{
		{name: "nothing is named"},
		{name: "the daemon's", env: []string{"APP_TOKEN", "EMPTY", "UNSET"}, want: map[string]string{"APP_TOKEN": "daemon", "EMPTY": ""}},
		{name: "the daemon's HOME", env: []string{"HOME"}, want: map[string]string{"HOME": "/home/daemon"}},
		{name: "the daemon's PATH as it is", env: []string{"PATH"}, want: map[string]string{"PATH": daemon["PATH"]}},
		{name: "the declaration's", declared: map[string]string{"A": "1"}, env: []string{"A"}, want: map[string]string{"A": "1"}},
		{name: "over the daemon's", declared: map[string]string{"APP_TOKEN": "declared"}, env: []string{"APP_TOKEN"}, want: map[string]string{"APP_TOKEN": "declared"}},
		{name: "fixed", fixed: map[string]string{"A": "f", "E": ""}, want: map[string]string{"A": "f", "E": ""}},
		{name: "fixed over both", declared: map[string]string{"APP_TOKEN": "declared"}, fixed: map[string]string{"APP_TOKEN": "f"}, want: map[string]string{"APP_TOKEN": "f"}},
		{name: "fixed over the base", declared: map[string]string{"HOME": "x"}, fixed: map[string]string{"HOME": "/h", "PATH": "/p"}, want: map[string]string{"HOME": "/h", "PATH": "/p"}},
		{name: "the base from the declaration", declared: map[string]string{"HOME": "/d", "TZ": "CET"}, env: []string{"HOME", "TZ"}, want: map[string]string{"HOME": "/d", "TZ": "CET"}},
		{name: "unnamed", declared: map[string]string{"A": "1", "B": "2", "C": "3"}, env: []string{"B"}, refused: "sets A, C;"},
		{name: "unnamed HOME", declared: map[string]string{"HOME": "x"}, refused: "sets HOME;"},
		{name: "unnamed PATH", declared: map[string]string{"PATH": "x"}, env: []string{"HOME"}, refused: "sets PATH;"},
		{name: "unnamed TZ", declared: map[string]string{"TZ": "x"}, refused: "sets TZ;"},
		{name: "another case", declared: map[string]string{"app_token": "x"}, env: []string{"APP_TOKEN"}, refused: "sets app_token;"},
	} {
		values := map[string]secret.Value{}
		for name, value := range tt.declared {
			values[name] = secret.Value{Literal: value}
		}
		target.Command.Env = slices.Sorted(maps.Keys(values))
		terms := trust.Terms{Env: append(slices.Sorted(maps.Keys(tt.fixed)), tt.env...), Fixed: tt.fixed}
		if tt.refused != "" {
			terms.Interpreter = true
			tr := trusttest.New(target, terms)
			_, err := egress.Run(t.Context(), tr, target, egress.Command{Args: target.Command.Args, Env: values}, nil, 1)
			if err == nil || !strings.Contains(err.Error(), tt.refused) {
				t.Errorf("%s: %v, want %q", tt.name, err, tt.refused)
			}
			continue
		}
		want := maps.Clone(base)
		maps.Copy(want, tt.want)
		got := given(t, target, terms, egress.Command{Env: values})
		if home, private := got["HOME"], want["HOME"] == ""; private && (!filepath.IsAbs(home) || home == daemon["HOME"]) {
			t.Errorf("%s: HOME is %q", tt.name, home)
		} else if private {
			delete(got, "HOME")
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: given %v, want %v", tt.name, got, want)
		}
		// What is shown is what is given.
		shown := []string{}
		for _, v := range egress.Variables(trusttest.New(target, terms), target) {
			if v.Name != "HOME" || v.From != egress.FromBase {
				shown = append(shown, v.Name)
			}
		}
		if !slices.Equal(shown, slices.Sorted(maps.Keys(want))) {
			t.Errorf("%s: %v are shown", tt.name, shown)
		}
	}
}

// Secrets are read for the child alone; their values are shown nowhere.
func declaredSecretsArrive(t *testing.T) {
	root := t.TempDir()
	t.Setenv("TOKEN_SOURCE", "s3cr3t")
	put(t, filepath.Join(root, "token"), "from a file\n")
	got := given(t, env(t, "AUTH", "FILE"), trust.Terms{Env: []string{"AUTH", "FILE"}}, egress.Command{Root: root, Env: map[string]secret.Value{
		"AUTH": {Secret: "env:TOKEN_SOURCE", Prefix: "Bearer "}, "FILE": {Secret: "file:token"},
	}})
	if got["AUTH"] != "Bearer s3cr3t" || got["FILE"] != "from a file" || got["TOKEN_SOURCE"] != "" {
		t.Errorf("given %v", got)
	}
}
