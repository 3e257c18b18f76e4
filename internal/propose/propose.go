// Package propose writes trust entries for an operator to review: the smallest entry of
// policy/trust/data.yaml that covers what a declaration asks for, each field with a comment that says what it
// grants. It decides nothing: callers evaluate the policy with the entry to see whether it is enough.
package propose

import (
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/egress"
)

// Entry is one trust entry. Fields are in the order in which they are written: those that name the target,
// then those that grant more than that.
type Entry struct {
	Name   string
	Fields []Field
	// Ways are alternatives, written as comments, one a line.
	Ways []string

	digest string // of the program's file
}

// Field is one field of an entry.
type Field struct {
	Key string
	// Value is a string, a bool, an int or a []string.
	Value any
	// Grants says in one line what the field allows.
	Grants string
}

// Brief returns the entry without comments.
func (e Entry) Brief() Entry {
	e.Fields, e.Ways = slices.Clone(e.Fields), nil
	for i := range e.Fields {
		e.Fields[i].Grants = ""
	}
	return e
}

// For returns the entry for a target, without a name, with the fields that the shipped policy asks for.
func For(target trust.Target, observed trust.Observed) Entry {
	if target.Command != nil {
		return command(*target.Command, target.Secrets, observed)
	}
	return address(*target.URL, target, observed)
}

func (e *Entry) secrets(references []string) {
	if len(references) > 0 {
		e.add("secrets", references, "gets the values of these")
	}
}

func command(c trust.Command, secrets []string, observed trust.Observed) Entry {
	program := c.Declared
	if strings.HasPrefix(program, "/") {
		program = c.Path // a leading slash names the file that runs
	}
	e := Entry{digest: observed.SHA256}
	line := append([]string{program}, c.Args...)
	if c.Dir == "" {
		e.add("command", line, "runs this command line, and nothing behind it, in an empty private directory")
	} else {
		e.add("command", line, "runs this command line, and nothing behind it")
		e.add("dir", c.Dir, "works in this directory")
	}
	if len(c.FromCall) > 0 {
		e.add("from_call", c.FromCall, "has these filled in by each call: a model writes them")
	}
	if c.Stdin {
		e.add("stdin", true, "has the arguments of each call on its standard input: a model writes them")
	}
	if names := slices.DeleteFunc(slices.Clone(c.Env), func(n string) bool { return !variable.MatchString(n) }); len(names) > 0 {
		e.add("env", names, "lets the declaration set these variables; some make a program load other code")
	}
	e.secrets(secrets)
	if observed.RunsCode != "" {
		e.add("interpreter", true, observed.RunsCode)
	}
	if observed.Unpinned != "" {
		e.add("unpinned", true, observed.Unpinned+"; better, declare one exact version or digest and leave this out")
	}
	if observed.InTree {
		e.add("in_tree", true,
			"what runs, or where it runs, is in the catalog's own tree, so everybody who can edit the catalog can change it")
	}
	if observed.SHA256 != "" {
		e.Ways = append(e.Ways, fmt.Sprintf("sha256: %q # pins the program's file as it is now", observed.SHA256))
	}
	if program != c.Path && c.Path != "" {
		e.Ways = append(e.Ways, "command: "+sequence(append([]string{c.Path}, c.Args...))+
			" # names the file, whatever leads to it")
	}
	return e
}

// variable matches the names of variables that an entry's env can grant.
var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func address(u trust.URL, target trust.Target, observed trust.Observed) Entry {
	var e Entry
	e.add("host", u.Host, "dials this host")
	if u.Scheme != "https" {
		e.add("scheme", u.Scheme, "in the clear")
	}
	if u.Port != map[string]int{"http": 80, "https": 443}[u.Scheme] {
		e.add("port", u.Port, "at this port")
	}
	if path := fixedPath(u); path != "/" {
		e.add("path", path, "at this path and below it")
	}
	if names := slices.DeleteFunc(slices.Clone(target.Headers), egress.BaseHeader); len(names) > 0 {
		e.add("headers", names, "sends these headers, beside those that every request may have")
	}
	if len(target.FromCall) > 0 {
		e.add("from_call", target.FromCall, "has these in such headers, filled in by each call: a model writes them")
	}
	e.secrets(target.Secrets)
	if near := notPublic(u.Host, observed.Addresses); len(near) > 0 {
		e.add("addresses", near, "reaches these, which are not on the public internet")
	}
	return e
}

// fixedPath returns the path up to the last segment that no template can change.
func fixedPath(u trust.URL) string {
	segments := u.Segments
	if u.Template && !strings.HasSuffix(u.Path, "/") {
		segments = segments[:max(len(segments)-1, 0)]
	}
	return "/" + strings.Join(segments, "/")
}

// notPublic returns the ranges that an entry must name for a host, one for each address that is not public.
func notPublic(host string, observed []string) []string {
	if len(observed) == 0 {
		observed = []string{strings.Trim(host, "[]")}
		if host == "localhost" || strings.HasSuffix(host, ".localhost") {
			observed = []string{"127.0.0.1", "::1"}
		}
	}
	var ranges []string
	for _, text := range observed {
		if a, err := netip.ParseAddr(text); err == nil && !egress.Public(a) {
			ranges = append(ranges, netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()).String())
		}
	}
	return ranges
}

func (e *Entry) add(key string, value any, grants string) {
	e.Fields = append(e.Fields, Field{key, value, grants})
}

// Value returns the entry as data.
func (e Entry) Value() map[string]any {
	value := make(map[string]any, len(e.Fields))
	for _, f := range e.Fields {
		value[f.Key] = f.Value
	}
	return value
}

// MayCover reports whether an entry names the program or the host of a target, and so could cover it.
func MayCover(entry map[string]any, target trust.Target) bool {
	if target.Command != nil {
		words := texts(entry["command"]) // without alternatives, which the first word can't have
		return len(words) > 0 && (words[0] == target.Command.Declared || words[0] == target.Command.Path)
	}
	return entry["host"] == target.URL.Host
}

// granting are the fields that grant more to a target. The others say which target the entry covers.
var granting = []string{"headers", "env", "secrets", "from_call", "stdin", "addresses", "interpreter", "unpinned", "in_tree"}

// order is the order of the fields of an entry. Others come first, by name.
var order = []string{
	"description", "command", "rest", "host", "scheme", "port", "path", "dir", "sha256", "max_connections", "headers",
	"env", "secrets", "from_call", "stdin", "addresses", "interpreter", "unpinned", "in_tree",
}

// Over returns an existing entry that also covers and grants what e does. e must cover what the existing
// entry was needed for, or a path of the same address.
func (e Entry) Over(name string, existing map[string]any) Entry {
	wide := e.Widen(name, existing)
	own := e.Value()
	path, _ := own["path"].(string)
	for i, f := range wide.Fields {
		switch f.Key {
		case "command":
			wide.Fields[i].Value = own["command"]
		case "path":
			wide.Fields[i].Value = common(f.Value, path)
		}
	}
	wide.Fields = slices.DeleteFunc(wide.Fields, func(f Field) bool { return f.Key == "path" && f.Value == "/" })
	return wide
}

// Widen returns an existing entry that also grants what e does. It covers the same target as before.
func (e Entry) Widen(name string, existing map[string]any) Entry {
	wide := Entry{Name: name, Ways: e.Ways, digest: e.digest}
	needed := e.Value()
	for key, value := range existing {
		field := Field{Key: key, Value: value}
		switch extra, ok := needed[key]; {
		case !ok:
		case key == "env", key == "secrets", key == "from_call", key == "addresses", key == "headers":
			field.Value = union(key, value, extra)
		case extra == true:
			field.Value = true
		}
		if key == "sha256" && e.digest != "" && value != e.digest {
			field.Value, field.Grants = e.digest, "renews the pin: review the file before"
		}
		wide.Fields = append(wide.Fields, field)
	}
	for _, f := range e.Fields {
		if _, has := existing[f.Key]; !has && slices.Contains(granting, f.Key) {
			wide.Fields = append(wide.Fields, f)
		}
	}
	_, rest := existing["rest"]
	for i, f := range wide.Fields {
		at := slices.IndexFunc(e.Fields, func(g Field) bool { return g.Key == f.Key })
		switch {
		case f.Grants != "" || at < 0:
		case f.Key == "command" && rest:
			wide.Fields[i].Grants = "runs what begins with this command line"
		default:
			wide.Fields[i].Grants = e.Fields[at].Grants
		}
	}
	slices.SortFunc(wide.Fields, func(a, b Field) int {
		i, j := slices.Index(order, a.Key), slices.Index(order, b.Key)
		if i != j {
			return i - j
		}
		return strings.Compare(a.Key, b.Key)
	})
	return wide
}

// union returns the texts of both lists of a field, those of the first in its order. NAME=value in env counts
// as NAME, and headers are compared without case.
func union(key string, a, b any) []string {
	all := texts(a)
	for _, text := range texts(b) {
		if !slices.ContainsFunc(all, func(has string) bool {
			return has == text || strings.HasPrefix(has, text+"=") || key == "headers" && strings.EqualFold(has, text)
		}) {
			all = append(all, text)
		}
	}
	return all
}

func texts(list any) (all []string) {
	switch list := list.(type) {
	case []string:
		return slices.Clone(list)
	case []any:
		for _, item := range list {
			if text, ok := item.(string); ok {
				all = append(all, text)
			}
		}
	}
	return all
}

// common returns the longest path, by segments, that contains both.
func common(a any, y string) string {
	x, _ := a.(string)
	var both []string
	ys := strings.Split(y, "/")
	for i, segment := range strings.Split(x, "/") {
		if i >= len(ys) || ys[i] != segment {
			break
		}
		both = append(both, segment)
	}
	return "/" + strings.TrimPrefix(strings.Join(both, "/"), "/")
}

// Join adds e to entries. It merges e into the entry that covers the same target or a part of it, if there is
// one, because two entries that cover one target deny it.
func Join(entries []Entry, e Entry) []Entry {
	value := e.Value()
	for i, other := range entries {
		if near(other.Value(), value) {
			entries[i] = e.Over(other.Name, other.Value())
			return entries
		}
	}
	return append(entries, e)
}

// near reports whether two entries made by For cover the same command line, or one path below the other of
// one address.
func near(a, b map[string]any) bool {
	for _, key := range []string{"dir", "host", "scheme", "port"} {
		if a[key] != b[key] {
			return false
		}
	}
	if !slices.Equal(texts(a["command"]), texts(b["command"])) {
		return false
	}
	x, _ := a["path"].(string)
	y, _ := b["path"].(string)
	x, y = strings.TrimSuffix(x, "/")+"/", strings.TrimSuffix(y, "/")+"/"
	return strings.HasPrefix(x, y) || strings.HasPrefix(y, x)
}

// Free returns a name that is not in taken: base, or base with a number.
func Free(base string, taken map[string]any) string {
	name := base
	for i := 2; ; i++ {
		if _, ok := taken[name]; !ok {
			return name
		}
		name = fmt.Sprintf("%s_%d", base, i)
	}
}

// With returns entries with e added, and without the entries named in instead.
func (e Entry) With(entries map[string]any, instead ...string) map[string]any {
	all := maps.Clone(entries)
	if all == nil {
		all = make(map[string]any)
	}
	for _, name := range instead {
		delete(all, name)
	}
	all[e.Name] = e.Value()
	return all
}
