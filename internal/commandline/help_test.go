package commandline

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// helped is one program's form, with the help text that it is held to.
type helped struct {
	// file is the help text, in testdata/help.
	file    string
	grammar grammar
	// before are the words in front of the options, and behind those behind them, of a line that is pinned.
	before, behind []string
	// elsewhere are known options that the help text does not list in a line of its own; it names them.
	elsewhere []string
	// also are files with more options that the program has.
	also []string
	// pinned is the verdict without any further option.
	pinned string
}

func helps() []helped {
	image := "img@sha256:" + strings.Repeat("0a", 32)
	npmOwn := []string{"-y", "--yes", "--no-install", "--no", "-p"}
	config := []string{"npm-config.txt"}
	return []helped{
		{"npm-exec.txt", ofNpx.grammar, []string{"npx"}, []string{"x@1.2.3"}, npmOwn, config, "ok"},
		{"npm-exec.txt", ofNpmExec.grammar, []string{"npm", "exec"}, []string{"--",
			"x@1.2.3"}, npmOwn, config, "ok"},
		{"pnpm-dlx.txt", ofPnpmDlx.grammar, []string{"pnpm", "dlx"}, []string{"x@1.2.3"}, nil, nil, "ok"},
		{"yarn-dlx.txt", ofYarnDlx.grammar, []string{"yarn", "dlx"}, []string{"x@1.2.3"}, nil, nil, "ok"},
		{"bunx.txt", ofBunx.grammar, []string{"bunx"}, []string{"x@1.2.3"}, nil, nil, "ok"},
		{"bunx.txt", ofBunx.grammar, []string{"bun", "x"}, []string{"x@1.2.3"}, nil, nil, "ok"},
		{"uvx.txt", ofUvx.grammar, []string{"uvx"}, []string{"x==1.2.3"}, nil, nil, "ok"},
		{"uvx.txt", ofUvx.grammar, []string{"uv", "tool", "run"}, []string{"x==1.2.3"}, nil, nil, "ok"},
		{"uv-run.txt", ofUvRun, []string{"uv", "run"}, []string{"x.py"}, nil, nil, "unpinned"},
		{"pipx-run.txt", ofPipx.grammar, []string{"pipx", "run"}, []string{"x==1.2.3"}, nil, nil, "ok"},
		{"go-run.txt", ofGoRun, []string{"go", "run"}, []string{"h.example/x@v1.2.3"}, nil, nil, "ok"},
		{"docker-run.txt", ofDockerRun, []string{"docker", "run"}, []string{image}, nil, nil, "ok"},
		{"podman-run.txt", ofPodmanRun, []string{"podman", "run"}, []string{image}, nil, nil, "ok"},
	}
}

// TestHelp holds each grammar to what the program itself says of its options: what the grammar has is an
// option that takes a value, or takes none, as the grammar says; and with any other option the form is not
// known.
func TestHelp(t *testing.T) {
	t.Parallel()
	for _, h := range helps() {
		name := strings.Join(h.before, " ")
		text := read(t, h.file)
		takes := declared(text)
		if len(takes) < 3 {
			t.Fatalf("%s: only %v was read of %s", name, takes, h.file)
		}
		verdict := func(option ...string) string {
			line := slices.Concat(h.before, option, h.behind)
			return class(Recognise(line[0], line[0], line[1:]))
		}
		if got := verdict(); got != h.pinned {
			t.Errorf("%s is %s without options, want %s", name, got, h.pinned)
		}
		for option, pattern := range h.grammar.options {
			value, listed := takes[option]
			if !listed && slices.Contains(h.elsewhere, option) {
				value, listed = pattern != nil, strings.Contains(read(t, "npx.txt")+text, option)
			}
			if !listed {
				t.Errorf("%s: %s does not list the option %s", name, h.file, option)
			} else if value != (pattern != nil) {
				t.Errorf("%s: %s takes a value: %v in %s", name, option, value, h.file)
			}
			if pattern == nil {
				if got := verdict(option + "=x"); got != "both" {
					t.Errorf("%s %s=x is %s", name, option, got)
				}
			} else if got := verdict(option, "{x}"); got != "both" {
				t.Errorf("%s %s {x} is %s", name, option, got)
			}
		}
		others := []string{"--an-option-of-tomorrow"}
		for option := range takes {
			others = append(others, option)
		}
		for _, more := range h.also {
			for option := range declared(read(t, more)) {
				others = append(others, option)
			}
		}
		for _, option := range others {
			if _, known := h.grammar.options[option]; known {
				continue
			}
			for _, written := range [][]string{{option}, {option, "x"}, {option + "=x"}, {option + "x"}} {
				if got := verdict(written...); got != "both" {
					t.Errorf("%s %v is %s", name, written, got)
				}
			}
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/help/" + file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	described  = regexp.MustCompile(`\s{2,}.*`)
	optionName = regexp.MustCompile(`^--?[A-Za-z0-9@][A-Za-z0-9:-]*`)
)

// declared are the options that a help text lists, each at the beginning of a line or behind a bracket, with
// whether they take a value.
func declared(text string) map[string]bool {
	options := map[string]bool{}
	for _, head := range strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '[' }) {
		head = strings.TrimSpace(head)
		if !strings.HasPrefix(head, "-") {
			continue
		}
		head = described.ReplaceAllString(head, "")
		var names []string
		value := false
		for _, word := range strings.FieldsFunc(head, func(r rune) bool { return strings.ContainsRune(" ,|=]", r) }) {
			if name := optionName.FindString(word); name != "" {
				names = append(names, name)
			} else if word != "..." {
				value = true
			}
		}
		for _, n := range names {
			options[n] = options[n] || value
		}
	}
	return options
}
