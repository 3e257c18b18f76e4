package upstream

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/catalogd/catalogd/internal/reach"
	"github.com/catalogd/catalogd/registry"
)

// veil takes out of what a server says the secrets that its declaration hands to it: a server that is careless, or has
// turned bad, would tell them to the model. Nothing else of an answer changes, and nothing at all of a server without
// secrets. The zero veil takes out nothing.
type veil struct{ mask *strings.Replacer }

// veil reads the secrets now, as their use does.
func (l *link) veil() veil {
	var declared map[string]registry.Value
	switch {
	case l.up.Server.Stdio != nil:
		declared = l.up.Server.Stdio.Env
	case l.up.Server.HTTP != nil:
		declared = l.up.Server.HTTP.Headers
	}
	secrets := map[string]reach.Value{}
	for name, v := range declared {
		if v.Secret != "" {
			secrets[name] = reach.Value(v)
		}
	}
	if len(secrets) == 0 {
		return veil{}
	}
	return veil{reach.Mask(secrets, l.root)}
}

// text is s without the secrets.
func (v veil) text(s string) string {
	if v.mask == nil {
		return s
	}
	return v.mask.Replace(s)
}

// json is valid JSON without the secrets in its strings. Each string is looked at as what it means, so that no way of
// writing it hides one; strings without a secret keep their bytes, and so does all around them.
func (v veil) json(raw json.RawMessage) json.RawMessage {
	if v.mask == nil || !json.Valid(raw) {
		return raw
	}
	var out bytes.Buffer
	done := 0
	for i := 0; i < len(raw); i++ {
		if raw[i] != '"' {
			continue
		}
		begin := i
		for i++; raw[i] != '"'; i++ {
			if raw[i] == '\\' {
				i++
			}
		}
		var meant string
		if json.Unmarshal(raw[begin:i+1], &meant) != nil {
			continue
		}
		if masked := v.mask.Replace(meant); masked != meant {
			out.Write(raw[done:begin])
			out.Write(encode(masked))
			done = i + 1
		}
	}
	if done == 0 {
		return raw
	}
	out.Write(raw[done:])
	return out.Bytes()
}
