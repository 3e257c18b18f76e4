package diff

import (
	"fmt"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/decision/lint"
)

// fieldKind is the effect of a changed value in a field of a trust entry.
type fieldKind int

const (
	more   fieldKind = iota // a list, a mapping or a flag: more of it grants more
	fewer                   // a flag: it grants less
	pinned                  // a required value: without it, anything is allowed
	capped                  // a number: a lower one grants less, none grants most
	covers                  // the subject of the entry: another value grants something else
	below                   // a path, which covers everything below it
	free                    // text
)

// trustField is a field of an entry, and what it grants in words; %s are the values added or removed.
type trustField struct {
	kind  fieldKind
	gains string
	loses string
}

// trustFields are the fields of policy/trust/data.yaml. A difference in any other field is Unclassified.
var trustFields = map[string]trustField{
	"env":             {more, "now also gives %s", "no longer gives %s"},
	"interpreter":     {more, "now covers commands that run code that they are given", "no longer covers commands that run code that they are given"},
	"unpinned":        {more, "now covers packages and images without an exact version", "no longer covers packages and images without an exact version"},
	"in_tree":         {more, "now covers programs and scripts in the catalog's own tree", "no longer covers programs and scripts in the catalog's own tree"},
	"rest":            {more, "now lets further declared arguments follow", "no longer lets further declared arguments follow"},
	"stdin":           {more, "now lets calls write to standard input", "no longer lets calls write to standard input"},
	"secrets":         {more, "now also gives the value of %s", "no longer gives the value of %s"},
	"from_call":       {more, "now lets a call fill in %s on the command line or in headers", "no longer lets a call fill in %s on the command line or in headers"},
	"addresses":       {more, "now lets %s be dialled though not public", "no longer lets %s be dialled"},
	"exact":           {fewer, "no longer lets anything follow its command line", "now lets anything follow its command line"},
	"headers":         {more, "now lets the headers %s be sent", "no longer lets the headers %s be sent"},
	"sha256":          {pinned, "is pinned to the digest %s", "is no longer pinned to the digest %s"},
	"max_connections": {capped, "", ""},
	"command":         {covers, "", ""},
	"args":            {covers, "", ""},
	"dir":             {covers, "", ""},
	"host":            {covers, "", ""},
	"scheme":          {covers, "", ""},
	"port":            {covers, "", ""},
	"path":            {below, "", ""},
	"description":     {free, "", ""},
}

// trustChange returns the class of a changed trust entry, as far as its fields show, and what it grants or
// withdraws.
func trustChange(pc lint.Change) (Class, string) {
	name := pc.Path[2]
	before, after := value(pc.Old), value(pc.New)
	if len(pc.Path) == 3 {
		entry, class, summary := mapping(after), Widening, "new trust entry "+name
		if pc.New == "" {
			entry, class, summary = mapping(before), Narrowing, "trust entry "+name+" is removed"
		}
		var fields []string
		for _, field := range keys(entry) {
			if trustFields[field].kind != free {
				fields = append(fields, field+" "+shownValue(entry[field]))
			}
		}
		return class, summary + ": " + strings.Join(fields, ", ")
	}
	field := pc.Path[3]
	what := fmt.Sprintf("entry %s: %s", name, strings.Join(pc.Path[3:], "."))
	known, ok := trustFields[field]
	if !ok {
		return Unclassified, what + " " + valueWords(pc.Old, pc.New)
	}
	moved := fmt.Sprintf("%s %s -> %s", what, shownValue(before), shownValue(after))
	if len(pc.Path) > 4 { // inside a mapping: of fixed values
		before, after = inMapping(pc.Path[4], before), inMapping(pc.Path[4], after)
	}
	switch known.kind {
	case more, fewer:
		had, has := members(before), members(after)
		class := setClass(had, has)
		if known.kind == fewer {
			class = setClass(has, had)
		}
		var summary []string
		gained, lost := beside(has, had), beside(had, has)
		if field == "env" {
			gained, lost = variables(gained), variables(lost)
		}
		if len(gained) > 0 {
			summary = append(summary, filled(known.gains, gained))
		}
		if len(lost) > 0 {
			summary = append(summary, filled(known.loses, lost))
		}
		if len(summary) == 0 {
			return Neutral, moved
		}
		return class, fmt.Sprintf("entry %s %s", name, strings.Join(summary, ", and "))
	case pinned:
		switch {
		case zero(after):
			return Widening, fmt.Sprintf("entry %s %s", name, filled(known.loses, []string{word(before)}))
		case zero(before):
			return Narrowing, fmt.Sprintf("entry %s %s", name, filled(known.gains, []string{word(after)}))
		}
		return Widening, moved
	case capped:
		return limitClass(number(before), number(after)), moved
	case below:
		if class, ok := pathClass(word(orEmpty(before)), word(orEmpty(after))); ok {
			return class, moved
		}
		return Widening, moved
	case covers:
		// It covers something else; evaluating decisions shows what.
		return Unclassified, moved
	}
	return Neutral, moved
}

// variables describes the origins of the variables that an entry names; NAME=value is fixed.
func variables(names []string) []string {
	var passed, fixed []string
	for _, name := range names {
		if strings.Contains(name, "=") {
			fixed = append(fixed, name)
		} else {
			passed = append(passed, name)
		}
	}
	if len(passed) > 0 {
		passed = []string{strings.Join(passed, ", ") + " of the declaration or of the daemon's environment"}
	}
	return append(passed, fixed...)
}

// pathClass returns the class of a path that changes to one above or below it.
func pathClass(from, to string) (Class, bool) {
	split := func(p string) []string {
		return slices.DeleteFunc(strings.Split(p, "/"), func(s string) bool { return s == "" })
	}
	a, b := split(from), split(to)
	switch {
	case slices.Equal(a, b):
		return Neutral, true
	case len(b) < len(a) && slices.Equal(a[:len(b)], b):
		return Widening, true
	case len(a) < len(b) && slices.Equal(b[:len(a)], a):
		return Narrowing, true
	}
	return Widening, false
}

func inMapping(key string, v any) any {
	if v == nil {
		return nil
	}
	return map[string]any{key: v}
}

func filled(text string, values []string) string {
	if strings.Contains(text, "%s") {
		return fmt.Sprintf(text, strings.Join(values, ", "))
	}
	return text
}

func value(text string) any {
	if text == "" {
		return nil
	}
	v, err := decoded([]byte(text))
	if err != nil {
		return text
	}
	return v
}

// shownValue formats a value as in a data file: lists without quotes.
func shownValue(v any) string {
	l, ok := v.([]any)
	if v == nil {
		return "none"
	}
	if !ok {
		return word(v)
	}
	words := make([]string, len(l))
	for i, x := range l {
		words[i] = word(x)
	}
	return "[" + strings.Join(words, ", ") + "]"
}
