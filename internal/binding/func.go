package binding

import (
	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/registry"
)

// funcKind calls a Go function of the program, which catalogd trusts as the program's own code: what it reaches is
// not declared, and no connect decision is asked for.
type funcKind struct{}

func newFunc(*check) kind { return funcKind{} }

func (funcKind) target() (trust.Target, bool) { return trust.Target{}, false }

func (funcKind) bind(_ trust.Trust, deps Deps) registry.Invoker { return deps.Func.Bound().Invoker }
