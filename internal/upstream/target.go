package upstream

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/reach"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// ownHeaders are the transport's; a declaration can't replace them. Names that begin with Mcp- are the protocol's.
var ownHeaders = []string{"Accept", "Connection", "Content-Length", "Content-Type", "Host", "Keep-Alive", "Last-Event-Id", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// Target is what the connect decision is asked about for s: the resolved command line, or the URL, with the names of
// what is sent along. root is the catalog's directory. With problems, the target is not to be reached; they stand at the
// fields of the server's declaration.
func Target(s registry.Server, root string) (trust.Target, problem.List) {
	var problems problem.List
	bad := func(code problem.Code, field, format string, args ...any) {
		problems.Errorf(code, s.At(field), "servers."+s.Name+"."+field, format, args...)
	}
	values := func(field string, vs map[string]registry.Value) {
		for _, name := range slices.Sorted(maps.Keys(vs)) {
			if v := vs[name]; v.Secret != "" {
				if err := reach.CheckSecret(v.Secret); err != nil {
					bad(problem.BadSecret, field+"."+name, "%v", err)
				}
			}
		}
	}
	switch {
	case s.Stdio != nil:
		path, err := reach.Resolve(s.Stdio.Command, root)
		if err != nil {
			bad(problem.BadBinding, "transport.stdio.command", "%v", err)
		}
		names := slices.Sorted(maps.Keys(s.Stdio.Env))
		for _, name := range names {
			if err := reach.CheckEnvName(name); err != nil {
				bad(problem.BadBinding, "transport.stdio.env."+name, "%v", err)
			}
		}
		values("transport.stdio.env", s.Stdio.Env)
		return trust.Target{Kind: trust.Stdio, Command: &trust.Command{
			Declared: s.Stdio.Command,
			Path:     path,
			Args:     append([]string{}, s.Stdio.Args...),
			Dir:      s.Stdio.Cwd,
			Env:      append([]string{}, names...),
		}}, problems
	case s.HTTP != nil:
		u, err := reach.ParseURL(s.HTTP.URL)
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
				bad(problem.BadBinding, field, "%q is no header name (RFC 9110, 5.1)", name)
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
		return trust.Target{Kind: trust.HTTP, URL: &u, Headers: names}, problems
	}
	bad(problem.MissingField, "transport", "say how the server is reached: stdio or http")
	return trust.Target{}, problems
}
