package derive

import (
	"encoding/base64"
	"strconv"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"
)

// textExpr is a text that a call has at a place, as CUE syntax: bytes where CUE wants bytes and no string, which JSON
// gives in base64 (canonicalBase64).
func textExpr(at cue.Value, text string) ast.Expr {
	if kind := at.IncompleteKind(); kind&cue.BytesKind != 0 && kind&cue.StringKind == 0 {
		if raw, err := base64.StdEncoding.Strict().DecodeString(text); err == nil {
			return &ast.BasicLit{Kind: token.STRING, Value: literal.Bytes.Quote(string(raw))}
		}
	}
	return ast.NewString(text)
}

// declared is what CUE says of the place that a path of keys and indices leads to, whether a call must fill it or may: by
// a field, a pattern of names or the rest of a list.
func declared(v cue.Value, path []string) cue.Value {
	for _, name := range path {
		selectors := []cue.Selector{cue.Str(name), cue.Str(name).Optional()}
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && v.IncompleteKind() == cue.ListKind {
			selectors = []cue.Selector{cue.Index(i), cue.AnyIndex}
		}
		below := v.LookupPath(cue.MakePath(selectors[0]))
		if !below.Exists() {
			below = v.LookupPath(cue.MakePath(selectors[1]))
		}
		v = below
	}
	return v
}
