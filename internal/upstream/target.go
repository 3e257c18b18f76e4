package upstream

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/egress"
	"github.com/catalogd/catalogd/internal/secret"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// ownHeaders are set by the transport; a declaration can't replace them. Names that begin with Mcp- belong to
// the protocol.
var ownHeaders = []string{"Accept", "Connection", "Content-Length", "Content-Type", "Host", "Keep-Alive", "Last-Event-Id", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// Target returns the target of the connect decision for s: the resolved command line, or the URL, with the
// names of the variables or headers that are sent. root is the catalog's directory. With problems, warnings
// too, the target must not be reached; their positions are the fields of the server's declaration.
func Target(s registry.Server, root string) (trust.Target, problem.List) {
	var problems problem.List
	bad := func(code problem.Code, field, format string, args ...any) {
		problems.Errorf(code, s.At(field), "servers."+s.Name+"."+field, format, args...)
	}
	values := func(field string, vs map[string]registry.Value) {
		for _, name := range slices.Sorted(maps.Keys(vs)) {
			if v := vs[name]; v.Secret != "" {
				if err := secret.CheckReference(v.Secret); err != nil {
					bad(problem.BadSecret, field+"."+name, "%v", err)
				}
			}
		}
	}
	switch {
	case s.Stdio != nil:
		path, err := egress.Resolve(s.Stdio.Command, root)
		if why, unusable := egress.Unusable(err); unusable { // on this machine; the declaration may be right on others
			problems.Warnf(problem.MissingCommand, s.At("transport.stdio.command"), "servers."+s.Name+".transport.stdio.command",
				"the tools of server %q are hidden: %s", s.Name, why)
		} else if err != nil {
			bad(problem.BadBinding, "transport.stdio.command", "%v", err)
		}
		names := slices.Sorted(maps.Keys(s.Stdio.Env))
		for _, name := range names {
			if err := egress.CheckEnvName(name); err != nil {
				bad(problem.BadBinding, "transport.stdio.env."+name, "%v", err)
			}
		}
		values("transport.stdio.env", s.Stdio.Env)
		command := &trust.Command{
			Declared: s.Stdio.Command,
			Path:     path,
			Args:     append([]string{}, s.Stdio.Args...),
			Dir:      s.Stdio.Cwd,
			Env:      append([]string{}, names...),
		}
		command.Script = egress.Script(*command, root)
		return trust.Target{Kind: trust.Stdio, Command: command, Secrets: references(s.Stdio.Env)}, problems
	case s.HTTP != nil:
		u, err := egress.ParseURL(s.HTTP.URL)
		if err == nil && u.Template {
			bad(problem.BadBinding, "transport.http.url", "a server's url is fixed; it holds no {expression}")
		} else if err != nil {
			bad(problem.BadBinding, "transport.http.url", "%v", err)
		}
		var names []string
		for _, name := range slices.Sorted(maps.Keys(s.HTTP.Headers)) {
			field, canonical := "transport.http.headers."+name, http.CanonicalHeaderKey(name)
			switch {
			case !httpguts.ValidHeaderFieldName(name):
				bad(problem.BadBinding, field, "%q is not a header name (RFC 9110, 5.1)", name)
			case slices.Contains(ownHeaders, canonical) || strings.HasPrefix(canonical, "Mcp-"):
				bad(problem.BadBinding, field, "%s is set by the transport; take it away", canonical)
			case slices.Contains(names, canonical):
				bad(problem.BadBinding, field, "%s is declared twice", canonical)
			case strings.ContainsAny(s.HTTP.Headers[name].Literal+s.HTTP.Headers[name].Prefix, "\r\n\x00"):
				bad(problem.BadBinding, field, "the value holds a line end or a NUL, which no header can carry")
			}
			names = append(names, canonical)
		}
		values("transport.http.headers", s.HTTP.Headers)
		slices.Sort(names)
		return trust.Target{Kind: trust.HTTP, URL: &u, Headers: names, Secrets: references(s.HTTP.Headers)}, problems
	}
	bad(problem.MissingField, "transport", "say how the server is reached: stdio or http")
	return trust.Target{}, problems
}

func references(declared map[string]registry.Value) []string {
	values := make(map[string]secret.Value, len(declared))
	for name, v := range declared {
		values[name] = secret.Value(v)
	}
	return secret.References(values)
}
