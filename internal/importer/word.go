package importer

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
)

// role is what a word is.
type role int

const (
	// other is a URL, or an argument of a command that works elsewhere than in the catalog's root.
	other role = iota
	// argument is an argument of a command that works in the catalog's root: ./x is there what it was for the
	// editor.
	argument
	// file is a command or a directory.
	file
)

// secret says why a word holds a secret, or is empty. The path of a program may have a long run of letters
// and digits, as of a package in a store by digest.
func (t *translation) secret(as role, before, word string) string {
	if as == file && strings.ContainsAny(word, `/\`) && !strings.Contains(word, "://") {
		if issued.MatchString(t.without(word)) {
			return looksLikeToken
		}
		return ""
	}
	return t.secretArgument(before, word)
}

// word translates a command, an argument, a directory or a URL, none of which can refer to anything. A
// default of the file is used; what has none, and every secret, becomes a hole.
func (t *translation) word(d *declaration, v *value, path, before string, as role) word {
	hole := func(note, what string) word {
		t.note(v, path, "%s", note)
		d.holes++
		return word{hole: what}
	}
	if why := t.secret(as, before, v.text); why != "" {
		return hole(fmt.Sprintf("a literal secret, %s, was not written: give the server the secret in env or a header, if it takes it there", why),
			fmt.Sprintf("%s was a secret and was not imported: take this out, and give the server the secret in env or a header", why))
	}
	if as != other {
		if below := folder(v.text); below != "" {
			t.note(v, path, "the editor's folder became the catalog's root")
			return word{literal: below}
		}
	}
	if home.MatchString(v.text) {
		return hole("~ is a directory of the client's user, and can't be referred to here: the place must be written out",
			"~ stood here: write out the path, as catalogd's user sees it")
	}
	missing := ""
	filled := t.in(v.text).ReplaceAllStringFunc(v.text, func(m string) string {
		ref := readReference(m)
		// An empty default is judged as the value would be that it replaces.
		value := cmp.Or(ref.fallback, "set")
		whole := t.in(v.text).ReplaceAllLiteralString(v.text, value)
		if ref.hasFallback && !tokenLike(value) && !sensitive(ref.what, value) && t.secret(as, before, value) == "" && t.secret(as, before, whole) == "" {
			t.note(v, path, "%s is not read: its default was written", ref.text())
			return ref.fallback
		}
		missing = ref.text()
		return ""
	})
	if missing != "" {
		return hole(missing+" can't be referred to here: the place must be written out",
			fmt.Sprintf("%s stood here: write out what it means; a secret goes into env or a header", missing))
	}
	// The default may have made a secret of the whole, such as a URL with a user.
	if why := t.secret(as, before, filled); why != "" {
		return hole(fmt.Sprintf("a literal secret, %s, was not written", why),
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
	refs := t.in(s).FindAllStringIndex(s, -1)
	if bare.MatchString(s) {
		refs = [][]int{{0, len(s)}}
	}
	homely := !headers && len(refs) == 0 && home.MatchString(s)
	prefix := schemePrefix.FindString(s)
	switch {
	case homely:
		name := t.claim("literal "+s, names[len(names)-1])
		t.note(v, path, "~ is a directory of the client's user: the value became {secret: %q}, so set %s in catalogd's environment to the whole path", "env:"+name, name)
		return entry{key: m.key, secret: name}
	case len(refs) == 0 && !sensitive(m.key, s) && !tokenLike(s) && t.secretInURL(s) == "":
		return entry{key: m.key, literal: s}
	case len(refs) == 0:
		name := t.claim("literal "+s[len(prefix):], names...)
		t.note(v, path, "a literal secret became {secret: %q}: set %s in catalogd's environment, and take the secret out of this file", "env:"+name, name)
		return entry{key: m.key, secret: name, prefix: prefix}
	}
	// One reference at the end, behind text that is no secret, is what a secret with a prefix says.
	first := refs[0]
	ref, before := readReference(s[first[0]:first[1]]), s[:first[0]]
	if len(refs) == 1 && first[1] == len(s) && (before == prefix || !tokenLike(before)) && t.secretInURL(before) == "" {
		if written := before + ref.fallback; ref.fallback != "" && !sensitive(m.key, ref.fallback) && !sensitive(ref.what, ref.fallback) && !tokenLike(written) && t.secretInURL(written) == "" {
			t.note(v, path, "%s is not read: its default was written", ref.text())
			return entry{key: m.key, literal: written}
		}
		if ref.hasFallback {
			t.note(v, path, "the default of %s was left out: a reference has none, so set it in catalogd's environment, or take the line out", ref.text())
		}
		switch {
		case ref.env != "":
			return entry{key: m.key, secret: ref.env, prefix: before}
		case ref.user != "":
			name := t.claim("user "+ref.user, upper(ref.user))
			t.note(v, path, "%s became {secret: %q}: catalogd has one value for all callers, so set %s in catalogd's environment", ref.text(), "env:"+name, name)
			return entry{key: m.key, secret: name, prefix: before}
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

// find is the file of a command, empty where it was not looked for or not found. What is not found is written
// all the same: it may be installed later.
func (t *translation) find(v *value, path, command string) string {
	if t.resolve == nil {
		return ""
	}
	file, err := t.resolve(command)
	if err != nil {
		t.note(v, path, "not found here, and written as it is: install the command, or write its path")
		return ""
	}
	return file
}
