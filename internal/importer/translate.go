package importer

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/catalogd/catalogd/internal/egress"
	"github.com/catalogd/catalogd/problem"
)

// declaration is a server as the catalog will have it. Exactly one of command and url is set.
type declaration struct {
	name, original string
	position       problem.Position
	holes          int

	command *word
	// file is the program's file, where it was looked for and found.
	file   string
	args   []word
	cwd    *word
	url    *word
	env    []entry // or the headers of a URL
	only   []string
	except []string
}

// word is a literal, or a hole: what to do before there can be one.
type word struct{ literal, hole string }

// entry is an environment variable or a header: a literal, or a reference to a secret with what stands before
// it.
type entry struct{ key, literal, secret, prefix string }

// translation turns servers into declarations. Its names are the ones that are given out, each for one thing.
type translation struct {
	*reading
	// servers are the names that the file has or that were given out; given, the latter alone.
	servers, given map[string]bool
	// variables maps the name of an environment variable to what it stands for: a reference of the file, or a
	// literal.
	variables map[string]string
}

func newTranslation(r *reading, chosen []foundServer) *translation {
	t := &translation{r, map[string]bool{}, map[string]bool{}, map[string]string{}}
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
		for _, m := range append(t.in(v.text).FindAllString(v.text, -1), bare.FindString(v.text)) {
			if ref := readReference(m); m != "" && ref.env != "" {
				t.variables[ref.env] = "reference"
			}
		}
	}
}

// claim is a variable's name for a secret: the first of the candidates that is free or stands for the same
// already.
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
	valid := catalogName.MatchString(s.name)
	if valid && !t.given[s.name] {
		t.given[s.name] = true
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
	t.servers[name], t.given[name] = true, true
	if valid {
		t.note(s.value, s.path, "called %s in the catalog: another server above has the name", name)
	} else {
		t.note(s.value, s.path, "called %s in the catalog: a name there is a letter or _, then up to 62 letters, digits, _ or -", name)
	}
	return name
}

// server translates one server, or reports as a fault what keeps it from being imported.
func (t *translation) server(s foundServer) declaration {
	if s.value.kind != object {
		t.fault(s.value, s.path, "a server is an object, and this is %s", s.value.kind)
		return declaration{}
	}
	d := declaration{name: t.name(s), original: s.name, position: s.pos}
	_, kind := t.oneOf(s, "type", "transport")
	_, command := t.oneOf(s, "command")
	if command != nil && command.kind == object { // Zed had the command line in one object
		line := command
		if command = line.get("path"); command == nil {
			t.fault(line, s.path+".command", "it must be a string, or an object with a path")
			return d
		}
		s.value = s.value.with(slices.DeleteFunc(slices.Clone(line.members), func(m member) bool { return m.key == "path" }))
	}
	urlKey, address := t.oneOf(s, "url", "serverUrl", "httpUrl")
	switch source := s.value.get("source"); {
	case command == nil && address == nil && source != nil && source.text == "extension":
		t.fault(s.value, s.path, "an extension of the editor starts this server, by a command that is not in the file; declare the command yourself")
		return d
	case command != nil && address != nil:
		t.fault(s.value, s.path, "a server has either a command or a URL, and this one has both")
		return d
	case command == nil && address == nil:
		t.fault(s.value, s.path, "a server has a command or a URL (command, url, serverUrl or httpUrl), and this one has neither")
		return d
	}
	if kind == nil && urlKey == "url" && t.client.URLIsSSE {
		t.sse(address, s.path+".url")
	}
	if !t.kind(s, kind, command != nil) {
		return d
	}
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

func (t *translation) sse(v *value, path string) {
	t.note(v, path, "SSE is a deprecated transport that catalogd does not speak: the URL is declared as streamable HTTP; "+
		"see whether the server has another one for that, often /mcp for /sse")
}

// kind compares the stated transport with the one that the fields show, and reports whether they agree.
func (t *translation) kind(s foundServer, v *value, stdio bool) bool {
	if v == nil {
		return true
	}
	path := s.path + ".type"
	switch {
	case v.kind != text:
		t.fault(v, path, "it must be a string, and is %s", v.kind)
	case slices.Contains([]string{"ws", "wss", "websocket"}, v.text):
		t.fault(v, path, "catalogd does not speak WebSocket; see whether the server has a URL of streamable HTTP too")
	case v.text == "sse" && !stdio:
		t.sse(v, path)
		return true
	case slices.Contains([]string{"stdio", "local"}, v.text) && stdio:
		return true
	case slices.Contains([]string{"http", "streamable-http", "streamableHttp", "streamable_http", "remote"}, v.text) && !stdio:
		return true
	case stdio:
		t.fault(v, path, "a server with a command is of type stdio")
	default:
		t.fault(v, path, "a server with a URL is of type http or sse; catalogd speaks no other")
	}
	return false
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
	arguments := other
	if cwd == nil || folder(cwd.text) == "." {
		arguments = argument
	}
	w := t.word(d, first, s.path+".command", "", file)
	d.command = &w
	if w.hole == "" {
		d.file = t.find(first, s.path+".command", w.literal)
	}
	before := ""
	for i, v := range words {
		w := t.word(d, v, fmt.Sprintf("%s.args.%d", s.path, i), before, arguments)
		d.args = append(d.args, w)
		if w.hole == "" && cwd == nil && folder(v.text) != "" {
			d.cwd = &word{literal: "."}
		}
		before = v.text
	}
	if cwd != nil && strings.TrimSpace(cwd.text) != "" {
		w := t.word(d, cwd, s.path+".cwd", "", file)
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
	headers, path := s.value.get("headers"), s.path+".headers"
	if inner := s.value.get("requestOptions"); headers == nil && inner != nil { // Continue's
		headers, path = inner.get("headers"), s.path+".requestOptions.headers"
	}
	d.env = t.entries(d, headers, path, true)
	text := address.text
	authorized := slices.ContainsFunc(d.env, func(e entry) bool { return strings.EqualFold(e.key, "Authorization") })
	if u, err := url.Parse(text); err == nil && u.User != nil && !authorized && !t.in(text).MatchString(text) {
		// The user information is what RFC 9110, 4.2.4 deprecates, and is sent as this header.
		name := t.claim("literal "+u.User.String(), upper(d.name, "basic"))
		u.User = nil
		text = u.String()
		d.env = append(d.env, entry{key: "Authorization", secret: name, prefix: "Basic "})
		t.note(address, s.path+"."+key, `a literal secret, the user information, became the header Authorization: set %s to the base64 form of user:password in catalogd's environment`, name)
	}
	w := t.word(d, &value{kind: address.kind, pos: address.pos, text: text}, s.path+"."+key, "", other)
	if _, err := egress.ParseURL(w.literal); err != nil && w.hole == "" {
		why := "the URL can't be reached: it must be http:// or https://, with a host and without a fragment"
		if strings.HasPrefix(w.literal, "ws://") || strings.HasPrefix(w.literal, "wss://") {
			why = "catalogd does not speak WebSocket; see whether the server has a URL of streamable HTTP too"
		}
		t.fault(address, s.path+"."+key, "%s", why)
	}
	d.url = &w
}

// folder is a path below the editor's folder as one below the catalog's root, or empty.
func folder(s string) string {
	for _, root := range []string{"${workspaceFolder}", "${workspaceRoot}"} {
		rest, ok := strings.CutPrefix(s, root)
		switch {
		case !ok || strings.Contains(rest, "${"):
		case rest == "" || rest == "/":
			return "."
		case rest[0] == '/':
			return "." + rest
		}
	}
	return ""
}
