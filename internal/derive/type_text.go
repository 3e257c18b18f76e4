package derive

import (
	"regexp"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"

	"github.com/catalogd/catalogd/problem"
)

// People who come from JSON Schema, YAML or TypeScript write a type as a text, or a whole JSON Schema, which
// CUE takes as constants that every call must send. Both are warned of.

// typeTexts are the texts that name a type, in lower case, with the type in CUE.
var typeTexts = map[string]string{
	"string": "string", "str": "string", "int": "int", "integer": "int", "number": "number", "float": "number",
	"bool": "bool", "boolean": "bool", "object": "{...}", "array": "[...string]",
}

// listTexts are the forms in which a text names the type of a list.
var listTexts = regexp.MustCompile(`^(?i:(\w+)\[\]|\[(?:\.\.\.)?(\w+)\]|\[\](\w+)|(?:list|array)[<\[](\w+)[>\]])$`)

// typeText returns the type that a constant names as a text.
func typeText(x ast.Expr) (typ string, ok bool) {
	lit, isLit := x.(*ast.BasicLit)
	if !isLit || lit.Kind != token.STRING {
		return "", false
	}
	text, err := literal.Unquote(lit.Value)
	if err != nil {
		return "", false
	}
	text = strings.ToLower(strings.TrimSpace(text))
	if m := listTexts.FindStringSubmatch(text); m != nil {
		item, ok := typeTexts[strings.Join(m[1:], "")]
		return "[..." + item + "]", ok
	}
	typ, ok = typeTexts[strings.TrimSuffix(text, "?")]
	return typ, ok
}

// suspectText warns of a constant that names a type. One of several alternatives is meant.
func (w *walker) suspectText(x *ast.BasicLit, at place) {
	if typ, ok := typeText(x); ok && w.choices == 0 {
		w.warnOnce(problem.UnsupportedConstr, Position(x.Pos()), at.path,
			"%s is a text, so nothing else is accepted here; write %s without quotes for any value of the type, or %s & string if the text is meant",
			x.Value, typ, x.Value)
	}
}

// schemaKeywords are the keywords of JSON Schema with which an argument is described.
var schemaKeywords = func() map[string]bool {
	all := map[string]bool{}
	for _, k := range strings.Fields(`type title description default examples example enum const format pattern minLength maxLength
		minimum maximum exclusiveMinimum exclusiveMaximum multipleOf items minItems maxItems uniqueItems properties required
		additionalProperties oneOf anyOf allOf nullable optional $schema $ref`) {
		all[k] = true
	}
	return all
}()

// suspectSchema warns of a struct that is a JSON Schema: all of its fields are keywords, and its type is the
// name of one. It reports whether it is.
func (w *walker) suspectSchema(x *ast.StructLit, at place) bool {
	if w.choices > 0 {
		return false
	}
	var typ string
	var pos token.Pos
	whole := false
	for _, e := range x.Elts {
		f, ok := e.(*ast.Field)
		if !ok {
			return false
		}
		name, _, err := ast.LabelName(f.Label)
		if err != nil || !schemaKeywords[name] {
			return false
		}
		switch name {
		case "type":
			typ, pos = keywordType(f.Value), f.Pos()
		case "properties":
			_, whole = f.Value.(*ast.StructLit)
		}
	}
	if typ == "" {
		return false
	}
	name := at.path[strings.LastIndex(at.path, ".")+1:]
	if at.top || whole {
		w.warnOnce(problem.UnsupportedConstr, Position(pos), at.path, "%s is written as JSON Schema, which is not read as one: "+
			"in CUE each property is a field, name!: string where it is required and name?: string where not, with its description as a "+
			"comment above it", name)
	} else {
		w.warnOnce(problem.UnsupportedConstr, Position(pos), at.path, "%s is written as JSON Schema, which is not read as one: "+
			"in CUE it is %s!: %s, or %s?: %s where it may be left out, with the description as a comment above it",
			name, name, typ, name, typ)
	}
	return true
}

// keywordType returns the type, in CUE, that a value of the keyword type names, or "".
func keywordType(x ast.Expr) string {
	if list, ok := x.(*ast.ListLit); ok && len(list.Elts) > 0 {
		var types []string
		for _, e := range list.Elts {
			lit, _ := e.(*ast.BasicLit)
			switch typ, ok := typeText(e); {
			case ok:
				types = append(types, typ)
			case lit != nil && lit.Value == `"null"`:
				types = append(types, "null")
			default:
				return ""
			}
		}
		return strings.Join(types, " | ")
	}
	typ, _ := typeText(x)
	return typ
}
