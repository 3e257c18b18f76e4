package upstream

import (
	"github.com/catalogd/catalogd/internal/secret"
	"github.com/catalogd/catalogd/registry"
)

// secretMask masks, in a server's messages, the secrets that its declaration sends to it: a careless or
// malicious server would pass them on to the model. The secrets are read now, as when they are sent. It is
// nil for a server without secrets.
func (l *link) secretMask() *secret.Masker {
	var declared map[string]registry.Value
	switch {
	case l.up.Server.Stdio != nil:
		declared = l.up.Server.Stdio.Env
	case l.up.Server.HTTP != nil:
		declared = l.up.Server.HTTP.Headers
	}
	values := make(map[string]secret.Value, len(declared))
	for name, v := range declared {
		values[name] = secret.Value(v)
	}
	return secret.MaskerFor(values, l.root)
}
