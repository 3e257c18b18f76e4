package importer

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/catalogd/catalogd/problem"
)

// declaration is a server as the catalog will have it. Exactly one of command and url is set.
type declaration struct {
	name, original string
	position       problem.Position
	holes          int

	command *word
	args    []word
	cwd     *word
	url     *word
	env     []entry // or the headers of a URL
	only    []string
	except  []string
}

// word is a literal, or a hole: what to do before there can be one.
type word struct{ literal, hole string }

// entry is an environment variable or a header: a literal, or a reference to a secret with what stands before it.
type entry struct{ key, literal, secret, prefix string }

// translation turns servers into declarations. Its names are the ones that are given out, each for one thing.
type translation struct {
	*reading
	servers map[string]bool
	// variables maps the name of an environment variable to what it stands for: a reference of the file, or a literal.
	variables map[string]string
}

func newTranslation(r *reading, chosen []foundServer) *translation {
	t := &translation{r, map[string]bool{}, map[string]string{}}
	for _, s := range chosen {
		if catalogName.MatchString(s.name) {
			t.servers[s.name] = true
		}
		t.reserve(s.value)
	}
	return t
}

// reserve keeps the variables that the file refers to for what it means by them.
func (t *translation) reserve(v *value) {
	for _, m := range v.members {
		t.reserve(m.value)
	}
	for _, item := range v.items {
		t.reserve(item)
	}
	if v.kind == text {
		for _, m := range append(anyReference.FindAllString(v.text, -1), bare.FindString(v.text)) {
			if ref := readReference(m); m != "" && ref.env != "" {
				t.variables[ref.env] = "reference"
			}
		}
	}
}

// claim is a variable's name for a secret: the first of the candidates that is free or stands for the same already.
func (t *translation) claim(meaning string, candidates ...string) string {
	last := candidates[len(candidates)-1]
	for i := 2; ; i++ {
		for _, name := range candidates {
			if held, ok := t.variables[name]; !ok || held == meaning {
				t.variables[name] = meaning
				return name
			}
		}
		candidates = []string{last + "_" + strconv.Itoa(i)}
	}
}

var catalogName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,62}$`)

// name is the server's name in the catalog.
func (t *translation) name(s foundServer) string {
	if catalogName.MatchString(s.name) {
		return s.name
	}
	base := strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || (r >= '0' && r <= '9') || (r >= 'a' && r <= 'z') || (r >= 'A' && r <= 'Z') {
			return r
		}
		return '_'
	}, s.name)
	if base == "" || !regexp.MustCompile(`^[A-Za-z_]`).MatchString(base) {
		base = "server_" + base
	}
	name := base[:min(len(base), 63)]
	for i := 2; t.servers[name]; i++ {
		suffix := "_" + strconv.Itoa(i)
		name = base[:min(len(base), 63-len(suffix))] + suffix
	}
	t.servers[name] = true
	t.note(s.value, s.path, "called %s in the catalog: a name there is a letter or _, then up to 62 letters, digits, _ or -", name)
	return name
}

func (t *translation) server(s foundServer) declaration {
	d := declaration{name: t.name(s), original: s.name, position: s.pos}
	_, kind := t.oneOf(s, "type", "transport")
	_, command := t.oneOf(s, "command")
	urlKey, address := t.oneOf(s, "url", "serverUrl", "httpUrl")
	switch {
	case command != nil && address != nil:
		t.fault(s.value, s.path, "a server has either a command or a URL, and this one has both")
		return d
	case command == nil && address == nil:
		t.fault(s.value, s.path, "a server has a command or a URL (command, url, serverUrl or httpUrl), and this one has neither")
		return d
	}
	t.kind(s, kind, command != nil)
	t.leftOut(s)
	if s.off {
		t.note(s.value, s.path, "the server is switched off here, and was named: a catalog has no such switch, a policy says what is reached")
	}
	if command != nil {
		t.stdio(&d, s, command)
	} else {
		t.http(&d, s, urlKey, address)
	}
	for _, v := range t.texts(s.value.get("includeTools"), s.path+".includeTools") {
		d.only = append(d.only, v.text)
	}
	for _, key := range []string{"excludeTools", "disabledTools"} {
		for _, v := range t.texts(s.value.get(key), s.path+"."+key) {
			d.except = append(d.except, v.text)
		}
	}
	return d
}

// kind holds the stated transport to the one that the fields show.
func (t *translation) kind(s foundServer, v *value, stdio bool) {
	if v == nil {
		return
	}
	path := s.path + ".type"
	switch {
	case v.kind != text:
		t.fault(v, path, "it must be a string, and is %s", v.kind)
	case v.text == "sse" && !stdio:
		t.note(v, path, "SSE is a deprecated transport that catalogd does not speak: the URL is declared as streamable HTTP; see whether the server has another one for that, often /mcp for /sse")
	case slices.Contains([]string{"stdio", "local"}, v.text) && stdio:
	case slices.Contains([]string{"http", "streamable-http", "streamableHttp", "streamable_http", "remote"}, v.text) && !stdio:
	case stdio:
		t.fault(v, path, "a server with a command is of type stdio")
	default:
		t.fault(v, path, "a server with a URL is of type http or sse; catalogd speaks no other")
	}
}

func (t *translation) stdio(d *declaration, s foundServer, command *value) {
	if h := s.value.get("headers"); h != nil {
		t.note(h, s.path+".headers", "left out: a command gets no headers")
	}
	words := t.texts(s.value.get("args"), s.path+".args")
	first := command
	switch {
	case command.kind == list: // opencode has the whole command line in one list
		all := t.texts(command, s.path+".command")
		if len(all) == 0 {
			t.fault(command, s.path+".command", "a command is not empty")
			return
		}
		first, words = all[0], append(all[1:], words...)
	case command.kind != text:
		t.fault(command, s.path+".command", "it must be a string, and is %s", command.kind)
		return
	}
	if strings.TrimSpace(first.text) == "" {
		t.fault(first, s.path+".command", "a command is not empty")
		return
	}
	cwd := s.value.get("cwd")
	if cwd != nil && cwd.kind != text {
		t.fault(cwd, s.path+".cwd", "it must be a string, and is %s", cwd.kind)
		return
	}
	// Only in the catalog's root does ./x of an argument mean what the editor's folder means.
	atRoot := cwd == nil || folder(cwd.text) == "."
	w := t.word(d, first, s.path+".command", "", true)
	d.command = &w
	before := ""
	for i, v := range words {
		w := t.word(d, v, fmt.Sprintf("%s.args.%d", s.path, i), before, atRoot)
		d.args = append(d.args, w)
		if w.hole == "" && cwd == nil && folder(v.text) != "" {
			d.cwd = &word{literal: "."}
		}
		before = v.text
	}
	if cwd != nil && strings.TrimSpace(cwd.text) != "" {
		w := t.word(d, cwd, s.path+".cwd", "", true)
		d.cwd = &w
	}
	key, env := t.oneOf(s, "env", "environment")
	d.env = t.entries(d, env, s.path+"."+key, false)
}

func (t *translation) http(d *declaration, s foundServer, key string, address *value) {
	for _, key := range []string{"args", "env", "environment", "cwd"} {
		if v := s.value.get(key); v != nil && len(v.items)+len(v.members)+len(v.text) > 0 {
			t.note(v, s.path+"."+key, "left out: a server at a URL has none")
		}
	}
	if address.kind != text || strings.TrimSpace(address.text) == "" {
		t.fault(address, s.path+"."+key, "it must be a URL in a string")
		return
	}
	d.env = t.entries(d, s.value.get("headers"), s.path+".headers", true)
	text := address.text
	authorized := slices.ContainsFunc(d.env, func(e entry) bool { return strings.EqualFold(e.key, "Authorization") })
	if u, err := url.Parse(text); err == nil && u.User != nil && !authorized && !anyReference.MatchString(text) {
		// The user information is what RFC 9110, 4.2.4 deprecates, and is sent as this header.
		name := t.claim("literal "+u.User.String(), upper(d.name, "basic"))
		u.User = nil
		text = u.String()
		d.env = append(d.env, entry{key: "Authorization", secret: name, prefix: "Basic "})
		t.note(address, s.path+"."+key, `a literal secret, the user information, became the header Authorization: set %s to the base64 form of user:password in catalogd's environment`, name)
	}
	w := t.word(d, &value{kind: address.kind, pos: address.pos, text: text}, s.path+"."+key, "", false)
	d.url = &w
}

// folder is a path below the editor's folder as one below the catalog's root, or empty.
func folder(s string) string {
	for _, root := range []string{"${workspaceFolder}", "${workspaceRoot}"} {
		rest, ok := strings.CutPrefix(s, root)
		switch {
		case !ok || anyReference.MatchString(rest):
		case rest == "" || rest == "/":
			return "."
		case rest[0] == '/':
			return "." + rest
		}
	}
	return ""
}

// word translates a command, an argument, a directory or a URL, none of which can refer to anything. A default of the
// file is used; what has none, and every secret, becomes a hole. root says that a path may be relative to the catalog.
func (t *translation) word(d *declaration, v *value, path, before string, root bool) word {
	hole := func(note, what string) word {
		t.note(v, path, "%s", note)
		d.holes++
		return word{hole: what}
	}
	if why := secretArgument(before, v.text); why != "" {
		return hole(fmt.Sprintf("a literal secret, %s, was not written: `catalogd check` refuses the place until it is filled in; give the server the secret in env or a header, if it takes it there", why),
			fmt.Sprintf("%s was a secret and was not imported: take this out, and give the server the secret in env or a header", why))
	}
	if root {
		if below := folder(v.text); below != "" {
			t.note(v, path, "the editor's folder became the catalog's root")
			return word{literal: below}
		}
	}
	missing := ""
	filled := anyReference.ReplaceAllStringFunc(v.text, func(m string) string {
		ref := readReference(m)
		// An empty default is judged as the value would be that it replaces.
		value := cmp.Or(ref.fallback, "set")
		whole := anyReference.ReplaceAllLiteralString(v.text, value)
		if ref.hasFallback && !tokenLike(value) && !sensitive(ref.what, value) && secretArgument(before, value) == "" && secretArgument(before, whole) == "" {
			t.note(v, path, "%s is not read: its default was written", ref.text())
			return ref.fallback
		}
		missing = ref.text()
		return ""
	})
	if missing != "" {
		return hole(missing+" can't be referred to here: `catalogd check` refuses the place until it is written out",
			fmt.Sprintf("%s stood here: write out what it means; a secret goes into env or a header", missing))
	}
	// The default may have made a secret of the whole, such as a URL with a user.
	if why := secretArgument(before, filled); why != "" {
		return hole(fmt.Sprintf("a literal secret, %s, was not written: `catalogd check` refuses the place until it is filled in", why),
			fmt.Sprintf("%s was a secret and was not imported", why))
	}
	return word{literal: filled}
}

// entries translates environment variables or headers.
func (t *translation) entries(d *declaration, v *value, path string, headers bool) (out []entry) {
	if v == nil {
		return nil
	}
	if v.kind != object {
		t.fault(v, path, "it must be an object of strings, and is %s", v.kind)
		return nil
	}
	for _, m := range v.members {
		at := path + "." + shown(m.key)
		switch m.value.kind {
		case text:
			out = append(out, t.entry(d, m, at, headers))
		case number, boolean:
			t.note(m.value, at, "it is %s, and was taken as text", m.value.kind)
			out = append(out, t.entry(d, m, at, headers))
		case null:
			t.note(m.value, at, "left out: it is null")
		default:
			t.fault(m.value, at, "it must be a string, and is %s", m.value.kind)
		}
	}
	return out
}

var schemePrefix = regexp.MustCompile(`(?i)^(bearer|basic|token|apikey|api-key)\s+`)

func (t *translation) entry(d *declaration, m member, path string, headers bool) entry {
	v, s := m.value, m.value.text
	names := []string{upper(m.key), upper(d.name, m.key)}
	if headers {
		names = names[1:]
	}
	refs := anyReference.FindAllStringIndex(s, -1)
	if bare.MatchString(s) {
		refs = [][]int{{0, len(s)}}
	}
	prefix := schemePrefix.FindString(s)
	switch {
	case len(refs) == 0 && !sensitive(m.key, s) && !tokenLike(s) && secretInURL(s) == "":
		return entry{key: m.key, literal: s}
	case len(refs) == 0:
		name := t.claim("literal "+s[len(prefix):], names...)
		t.note(v, path, "a literal secret became {secret: %q}: set %s in catalogd's environment, and take the secret out of this file", "env:"+name, name)
		return entry{key: m.key, secret: name, prefix: prefix}
	}
	// One reference at the end, behind text that is no secret, is what a secret with a prefix says.
	first := refs[0]
	ref, before := readReference(s[first[0]:first[1]]), s[:first[0]]
	if len(refs) == 1 && first[1] == len(s) && (before == prefix || !tokenLike(before)) && secretInURL(before) == "" {
		if written := before + ref.fallback; ref.fallback != "" && !sensitive(m.key, ref.fallback) && !sensitive(ref.what, ref.fallback) && !tokenLike(written) && secretInURL(written) == "" {
			t.note(v, path, "%s is not read: its default was written", ref.text())
			return entry{key: m.key, literal: written}
		}
		if ref.hasFallback {
			t.note(v, path, "the default of %s was left out: a reference has none, so set it in catalogd's environment, or take the line out", ref.text())
		}
		switch {
		case ref.env != "":
			return entry{key: m.key, secret: ref.env, prefix: before}
		case ref.input != "":
			name := t.claim("input "+ref.input, upper(ref.input), upper(d.name, ref.input))
			t.note(v, path, "%s became {secret: %q}: catalogd asks for no input, so set %s in catalogd's environment", ref.text(), "env:"+name, name)
			return entry{key: m.key, secret: name, prefix: before}
		}
	}
	name := t.claim("literal "+s, names[len(names)-1])
	t.note(v, path, "a text made of references became {secret: %q}: a declaration can't join them, so set %s in catalogd's environment to the whole text", "env:"+name, name)
	return entry{key: m.key, secret: name}
}
