package loader

import (
	"encoding/json"

	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// values is the schema's string | #Secret, by name.
type values map[string]registry.Value

// UnmarshalJSON reads a string as a literal and an object as a reference to a secret.
func (v *values) UnmarshalJSON(data []byte) error {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	*v = values{}
	for name, one := range raw {
		var value registry.Value
		var err error
		if len(one) > 0 && one[0] == '"' {
			err = json.Unmarshal(one, &value.Literal)
		} else {
			err = json.Unmarshal(one, &value)
		}
		if err != nil {
			return err
		}
		(*v)[name] = value
	}
	return nil
}

// binding decodes how a tool is executed. The wire types are those of package registry with values in place
// of their maps.
func (o *object) binding(t *registry.Tool) {
	var b struct {
		Exec *struct {
			registry.Exec
			Env values `json:"env"`
		} `json:"exec"`
		HTTP *struct {
			registry.HTTP
			Headers values `json:"headers"`
			Query   values `json:"query"`
		} `json:"http"`
		MCP  *registry.MCP `json:"mcp"`
		JQ   *registry.JQ  `json:"jq"`
		Func string        `json:"func"`
	}
	given := map[string]json.RawMessage{}
	o.decode("binding", &given)
	o.full(given, o.u.compiler.shapes[toolsField].fields["binding"])
	if err := json.Unmarshal(encoded(given), &b); err != nil {
		o.errorf(problem.CUEValue, "binding", "the value can't be read: %v", err)
		return
	}
	kinds := map[string]bool{"exec": b.Exec != nil, "http": b.HTTP != nil, "mcp": b.MCP != nil, "jq": b.JQ != nil, "func": b.Func != ""}
	if !o.one("binding", kinds) {
		return
	}
	switch {
	case b.Exec != nil:
		b.Exec.Exec.Env = b.Exec.Env
		t.Binding.Exec = &b.Exec.Exec
	case b.HTTP != nil:
		b.HTTP.HTTP.Headers, b.HTTP.HTTP.Query = b.HTTP.Headers, b.HTTP.Query
		t.Binding.HTTP = &b.HTTP.HTTP
	}
	t.Binding.MCP, t.Binding.JQ, t.Binding.Func = b.MCP, b.JQ, b.Func
}

// transport decodes how a server is reached.
func (o *object) transport(s *registry.Server) {
	var t struct {
		Stdio *struct {
			registry.Stdio
			Env values `json:"env"`
		} `json:"stdio"`
		HTTP *struct {
			registry.HTTPAddress
			Headers values `json:"headers"`
		} `json:"http"`
	}
	o.decode("transport", &t)
	if !o.one("transport", map[string]bool{"stdio": t.Stdio != nil, "http": t.HTTP != nil}) {
		return
	}
	if t.Stdio != nil {
		t.Stdio.Stdio.Env = t.Stdio.Env
		s.Stdio = &t.Stdio.Stdio
	}
	if t.HTTP != nil {
		t.HTTP.HTTPAddress.Headers = t.HTTP.Headers
		s.HTTP = &t.HTTP.HTTPAddress
	}
}
