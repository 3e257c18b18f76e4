package secret

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Literal is a secret that is written out in a catalog or a policy, where a reference belongs. Nothing but
// Shown may be printed of it.
//
// Two things find one. The rules of gitleaks (gitleaks.toml, as of version 8.30.1, under the licence beside
// it) know the tokens of well-known services by their form; they are parsed when the first text is searched,
// and each is compiled when one of its keywords is found. And a text is compared with the name that it is
// written under (a header, a variable, an option, a parameter of a URL): under a name that says secret, it is
// one unless it looks like a placeholder or like words.
//
// This finds accidents. Whoever wants to hide a secret can, for example by composing it from parts.
type Literal struct {
	// Rule is the name of a rule of gitleaks, or says where the secret is.
	Rule string
	// At is the offset in bytes at which the secret begins in the text that was searched; for a name and a
	// value, in the value.
	At int
	// Secret is the secret itself, to recognise it elsewhere.
	Secret string

	prefix string // what all secrets of the rule begin with
}

// Shown returns what a message may say of the secret: its kind, at most four characters of the kind's prefix,
// and its length.
func (f Literal) Shown() string {
	shown := f.Rule + ", "
	if f.prefix != "" {
		shown += f.prefix[:min(4, len(f.prefix))] + "..., "
	}
	return fmt.Sprintf("%s%d characters", shown, utf8.RuneCountInString(f.Secret))
}

// FindInText looks at a text by itself: a description, a comment, a program, an urlInText.
func FindInText(s string) (Literal, bool) {
	if len(s) < minLiteral {
		return Literal{}, false
	}
	s = unpunctuated(s)
	if f, ok := findByRules(s, 0, false); ok {
		return f, true
	}
	return findInURL(s)
}

// FindInField searches a value that is written under a name.
func FindInField(name, value string) (Literal, bool) {
	if len(value) < minLiteral {
		return Literal{}, false
	}
	value = unpunctuated(value)
	named := name + `: "` // as the rules expect an assignment
	if f, ok := findByRules(named+value+`"`, len(named), true); ok {
		return f, true
	}
	if f, ok := findInURL(value); ok {
		return f, true
	}
	if k := kindOf(name); k != innocent {
		return findUnderName(k, name, value, 0)
	}
	return Literal{}, false
}

// FindInSetting is FindInField for the value of a header or a variable: random characters are a secret there
// too, unless the name is that of an identifier.
func FindInSetting(name, value string) (Literal, bool) {
	if f, ok := FindInField(name, value); ok {
		return f, true
	}
	if !idName.MatchString(name) && random(value) {
		return Literal{Rule: "a random value", Secret: value}, true
	}
	return Literal{}, false
}

// FindInArgument searches one argument of a command; before is the argument in front of it.
func FindInArgument(before, arg string) (Literal, bool) {
	name, value := "", arg
	if i := strings.IndexAny(arg, "=:"); i > 0 && assigned(arg[:i]) && !strings.HasPrefix(arg[i:], "://") {
		name, value = strings.TrimLeft(arg[:i], "-"), strings.TrimLeft(arg[i+1:], " ")
	} else if strings.HasPrefix(before, "-") && !strings.ContainsAny(before, "=:") && !strings.HasPrefix(arg, "-") {
		name = strings.TrimLeft(before, "-")
	}
	f, ok := FindInSetting(name, value)
	f.At += len(arg) - len(value)
	return f, ok
}

// assigned reports whether s is what precedes = or : in an argument: an option, a variable or a header.
func assigned(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return true
}

// FindInLine searches a line of source that could not be parsed or is in another language.
func FindInLine(s string) (Literal, bool) {
	if len(s) < minLiteral {
		return Literal{}, false
	}
	s = unpunctuated(s)
	if f, ok := findByRules(s, 0, true); ok {
		return f, true
	}
	if f, ok := findInURL(s); ok {
		return f, true
	}
	for _, m := range assignment.FindAllStringSubmatchIndex(s, -1) {
		if k := kindOf(s[m[2]:m[3]]); k != innocent {
			if f, ok := findUnderName(k, s[m[2]:m[3]], s[m[4]:m[5]], m[4]); ok {
				return f, true
			}
		}
	}
	return Literal{}, false
}
