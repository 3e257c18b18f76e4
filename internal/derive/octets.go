package derive

import (
	"encoding/base64"
	"strconv"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"
)

// textExpr converts a call's string at a place to CUE syntax: to bytes if CUE expects bytes and no string,
// which JSON has in base64 (canonicalBase64).
func textExpr(at cue.Value, text string) ast.Expr {
	if kind := at.IncompleteKind(); kind&cue.BytesKind != 0 && kind&cue.StringKind == 0 {
		if raw, err := base64.StdEncoding.Strict().DecodeString(text); err == nil {
			return &ast.BasicLit{Kind: token.STRING, Value: literal.Bytes.Quote(string(raw))}
		}
	}
	return ast.NewString(text)
}

// declared returns CUE's value at a path of keys and indexes, whether a call must or may set it: by a field,
// a pattern of names or the rest of a list.
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
