package derive

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/problem"
)

// lose records that the schema doesn't express a constraint at pos, of the value at a place: the schema
// accepts all that CUE accepts there, and more, and CUE checks the call. The text briefly describes the loss,
// preferably as the author wrote it. The same constraint, reached again on another way through the walk, is
// one loss.
func (w *walker) lose(kind contract.LossKind, at place, pos problem.Position, format string, args ...any) {
	loss := contract.Loss{
		Kind: kind,
		Path: strings.TrimPrefix(strings.TrimPrefix(at.path, w.base), "."),
		File: pos.File, Line: pos.Line, Col: pos.Col,
		What: fmt.Sprintf(format, args...),
	}
	w.lossCount++
	same := func(l contract.Loss) bool {
		return l.Kind == loss.Kind && l.Path == loss.Path && l.File == loss.File && l.Line == loss.Line && l.Col == loss.Col
	}
	if !slices.ContainsFunc(w.losses, same) {
		w.losses = append(w.losses, loss)
	}
}

// withdraw takes back the losses after the first n, and returns them.
func (w *walker) withdraw(n int) []contract.Loss {
	taken := slices.Clone(w.losses[n:])
	w.losses = w.losses[:n]
	w.lossCount -= len(taken)
	return taken
}

// lossAgain records losses that were withdrawn.
func (w *walker) lossAgain(losses []contract.Loss) {
	w.losses = append(w.losses, losses...)
	w.lossCount += len(losses)
}

// sortedLosses returns the losses by position, so that the same catalog always yields the same contract.
func (w *walker) sortedLosses() []contract.Loss {
	slices.SortFunc(w.losses, func(a, b contract.Loss) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Kind, b.Kind))
	})
	return w.losses
}
