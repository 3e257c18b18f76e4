package derive

import (
	"cuelang.org/go/cue"

	"github.com/catalogd/catalogd/contract"
)

func (w *walker) verify(top *node, v, closed cue.Value, strictness contract.Strictness, path string) {
}
