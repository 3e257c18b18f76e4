package mcpconfig

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// runner is a program that fetches what it runs. The shipped policy decides (policy/lib/packages.rego); this says only
// which entries to propose with unpinned: true. The test of the clients' files asks the policy about each proposal.
type runner struct {
	// words are what the command line begins with.
	words []string
	// valued are the options that name a package.
	valued []string
	pinned *regexp.Regexp
}

var (
	npmPinned    = regexp.MustCompile(`^((@[^/@]+/)?[^/@]+@[0-9]+\.[0-9]+\.[0-9]+([-+].*)?|\.{0,2}/.*)$`)
	pythonPinned = regexp.MustCompile(`^([^=@]+(==|@)[0-9]+(\.[0-9]+)+([a-z0-9.+]*)?|\.{0,2}/.*)$`)
	npmValued    = []string{"-p", "--package"}
	pyValued     = []string{"--from", "--spec"}
	imagePinned  = regexp.MustCompile(`@sha256:[0-9a-f]{64}$`)
)

var runners = []runner{
	{[]string{"npx"}, npmValued, npmPinned}, {[]string{"bunx"}, npmValued, npmPinned}, {[]string{"pnpx"}, npmValued, npmPinned},
	{[]string{"npm", "exec"}, npmValued, npmPinned}, {[]string{"npm", "x"}, npmValued, npmPinned}, {[]string{"pnpm", "dlx"}, npmValued, npmPinned},
	{[]string{"yarn", "dlx"}, npmValued, npmPinned}, {[]string{"bun", "x"}, npmValued, npmPinned},
	{[]string{"uvx"}, pyValued, pythonPinned}, {[]string{"pipx", "run"}, pyValued, pythonPinned}, {[]string{"uv", "tool", "run"}, pyValued, pythonPinned},
}

// unpinned reports whether the command line fetches something without saying exactly what.
func unpinned(argv []string) bool {
	line := append([]string{path.Base(argv[0])}, argv[1:]...)
	if slices.Contains([]string{"docker", "podman", "nerdctl"}, line[0]) {
		return (slices.Contains(line, "run") || slices.Contains(line, "create")) && !slices.ContainsFunc(line, imagePinned.MatchString)
	}
	for _, r := range runners {
		if len(line) < len(r.words) || !slices.Equal(line[:len(r.words)], r.words) {
			continue
		}
		return !r.fixed(line[len(r.words):])
	}
	return false
}

// fixed reports whether each package that the words name is pinned, or nothing is fetched.
func (r runner) fixed(words []string) bool {
	var named []string
	first := ""
	for i, w := range words {
		option := strings.HasPrefix(w, "-")
		if first == "" && (w == "--no-install" || w == "--no") && r.pinned == npmPinned {
			return true
		}
		for _, flag := range r.valued {
			if w == flag && i+1 < len(words) {
				named = append(named, words[i+1])
			} else if value, ok := strings.CutPrefix(w, flag+"="); ok {
				named = append(named, value)
			}
		}
		if first == "" && !option && (i == 0 || !slices.Contains(r.valued, words[i-1])) {
			first = w
		}
	}
	if len(named) == 0 {
		named = []string{first}
	}
	return !slices.ContainsFunc(named, func(p string) bool { return !r.pinned.MatchString(p) })
}
