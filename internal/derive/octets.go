package derive

import (
	"encoding/base64"

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
