package decision

import (
	"errors"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/catalogd/catalogd/decision/lint"
)

// OPA's json.match_schema and json.verify_schema read the targets of $ref, files included, whatever the
// capabilities say of the network, and without limits. They are allowed for schemas that are constants of the
// policy, refer to nothing but themselves and are small. That is checked at load
// (lint.Policy.SchemaArguments) and again at every call.
func init() {
	for _, name := range lint.SchemaBuiltins {
		match, arity := topdown.GetBuiltin(name), ast.BuiltinMap[name].Decl.Arity()
		topdown.RegisterBuiltinFunc(name, func(bctx topdown.BuiltinContext, operands []*ast.Term, iter func(*ast.Term) error) error {
			nodes, err := lint.SchemaTermSize(operands[arity-1]) // the output may follow the arguments
			if err == nil && arity == 2 && nodes*termNodes(operands[0]) > maxMatched {
				err = errors.New("document and schema are too large to be compared")
			}
			if err != nil {
				return err
			}
			return match(bctx, operands, iter)
		})
	}
}

// maxMatched bounds the values of a schema (lint.SchemaTermSize) times those of a document. A comparison of
// so much takes about a second where every value is wrong.
const maxMatched = 100_000

// termNodes counts the values of a document, up to more than can be compared.
func termNodes(t *ast.Term) int {
	if text, ok := t.Value.(ast.String); ok { // is parsed
		return 1 + strings.Count(string(text), ",") + strings.Count(string(text), ":")
	}
	n := 0
	ast.WalkTerms(t, func(*ast.Term) bool {
		n++
		return n > maxMatched
	})
	return n
}
