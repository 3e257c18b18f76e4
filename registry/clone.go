package registry

import (
	"maps"
	"slices"
)

// A registry returns deep copies, so that callers can't change it.

func (t Tool) clone() Tool {
	t.Args = t.Args.Clone()
	if t.Result != nil {
		result := t.Result.Clone()
		t.Result = &result
	}
	t.Binding = t.Binding.clone()
	t.Tags = slices.Clone(t.Tags)
	t.Examples = slices.Clone(t.Examples)
	for i, e := range t.Examples {
		t.Examples[i].Args, t.Examples[i].Result = slices.Clone(e.Args), slices.Clone(e.Result)
	}
	t.Annotations, t.Icons, t.Meta = slices.Clone(t.Annotations), slices.Clone(t.Icons), slices.Clone(t.Meta)
	t.Fields = maps.Clone(t.Fields)
	return t
}

func (b Binding) clone() Binding {
	if b.Exec != nil {
		exec := *b.Exec
		exec.Argv, exec.Env = slices.Clone(exec.Argv), maps.Clone(exec.Env)
		b.Exec = &exec
	}
	if b.HTTP != nil {
		http := *b.HTTP
		http.Headers, http.Query, http.Join = maps.Clone(http.Headers), maps.Clone(http.Query), maps.Clone(http.Join)
		if http.Body != nil {
			body := *http.Body
			body.Args, body.Files = slices.Clone(body.Args), maps.Clone(body.Files)
			http.Body = &body
		}
		http.Success = slices.Clone(http.Success)
		if http.Pages != nil {
			pages := *http.Pages
			http.Pages = &pages
		}
		if http.Retry != nil {
			retry := *http.Retry
			retry.Statuses = slices.Clone(retry.Statuses)
			http.Retry = &retry
		}
		b.HTTP = &http
	}
	if b.MCP != nil {
		mcp := *b.MCP
		b.MCP = &mcp
	}
	if b.JQ != nil {
		jq := *b.JQ
		b.JQ = &jq
	}
	return b
}

func (s Server) clone() Server {
	if s.Stdio != nil {
		stdio := *s.Stdio
		stdio.Args, stdio.Env = slices.Clone(stdio.Args), maps.Clone(stdio.Env)
		s.Stdio = &stdio
	}
	if s.HTTP != nil {
		http := *s.HTTP
		http.Headers = maps.Clone(http.Headers)
		s.HTTP = &http
	}
	if s.Discover != nil {
		d := *s.Discover
		d.Only, d.Except, d.Tools = slices.Clone(d.Only), slices.Clone(d.Except), maps.Clone(d.Tools)
		for name, o := range d.Tools {
			o.Tags = slices.Clone(o.Tags)
			if o.Result != nil {
				result := o.Result.Clone()
				o.Result = &result
			}
			d.Tools[name] = o
		}
		s.Discover = &d
	}
	s.Forward = slices.Clone(s.Forward)
	s.Fields = maps.Clone(s.Fields)
	return s
}

func (b Branch) clone() Branch {
	b.Labels = maps.Clone(b.Labels)
	b.Strictness = maps.Clone(b.Strictness)
	b.Narrow = maps.Clone(b.Narrow)
	for name, n := range b.Narrow {
		n.Args = n.Args.Clone()
		b.Narrow[name] = n
	}
	b.Select, b.Hide = b.Select.Clone(), b.Hide.Clone()
	b.Fields = maps.Clone(b.Fields)
	return b
}

// Clone returns a deep copy; nil of nil.
func (s *Selector) Clone() *Selector {
	if s == nil {
		return nil
	}
	return &Selector{Names: slices.Clone(s.Names), Tags: slices.Clone(s.Tags), Servers: slices.Clone(s.Servers)}
}
