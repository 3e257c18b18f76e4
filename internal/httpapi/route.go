package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/internal/mcpserver"
	"github.com/catalogd/catalogd/internal/token"
	"github.com/catalogd/catalogd/registry"
)

// route is one path of the API with its operations. Requests are dispatched by it, and the description
// (openapi.go) is made of it.
type route struct {
	// path has {name} for a segment that is not empty; the handler reads it with PathValue.
	path string
	tag  tag
	// slash says that one trailing slash is ignored.
	slash      bool
	operations []operation

	names []string // of the variable segments of path, in order
}

// operation is what one method does at a path.
type operation struct {
	method string
	needs  need
	// id is the operationId, summary one line, and about more of it in Markdown.
	id, summary, about string
	// params are the parameters of the query and the headers that the operation reads. Any other parameter
	// of the query, one that is repeated without many, and an empty one are answered 400, unless loose.
	params []parameter
	loose  bool
	// body is nil if the operation reads none.
	body *body
	// answers are those of the handler. What comes before it (described.go) need not be repeated.
	answers []answer
	handle  func(http.ResponseWriter, *http.Request, token.Caller)
}

// find returns the route of a request, and the values of the variable segments of its path, in order. A path
// that isn't clean has no route.
func (a *API) find(r *http.Request) (*route, [2]string) {
	if r.URL.RawPath != "" {
		return nil, [2]string{}
	}
	trimmed := strings.TrimSuffix(r.URL.Path, "/")
	for i := range a.routes {
		at, to := r.URL.Path, &a.routes[i]
		if to.slash {
			at = trimmed
		}
		if values, ok := to.match(at); ok && path.Clean(at) == at {
			return to, values
		}
	}
	return nil, [2]string{}
}

// match compares a path with that of the route, without allocating.
func (to *route) match(at string) (values [2]string, ok bool) {
	n, want := 0, to.path
	for more, moreWanted := true, true; more || moreWanted; {
		if more != moreWanted {
			return values, false
		}
		var segment, wanted string
		segment, at, more = strings.Cut(at, "/")
		wanted, want, moreWanted = strings.Cut(want, "/")
		if !strings.HasPrefix(wanted, "{") {
			if segment != wanted {
				return values, false
			}
			continue
		}
		if segment == "" {
			return values, false
		}
		values[n], n = segment, n+1
	}
	return values, true
}

// variables are the names of the variable segments of a path, in order.
func variables(path string) (names []string) {
	for segment := range strings.SplitSeq(path, "/") {
		if name, ok := strings.CutPrefix(segment, "{"); ok {
			names = append(names, strings.TrimSuffix(name, "}"))
		}
	}
	return names
}

// operation returns that of a method; HEAD is a GET whose body net/http leaves out. It returns nil where the
// method is not allowed.
func (to *route) operation(method string) *operation {
	for i := range to.operations {
		o := &to.operations[i]
		if o.method == method || o.head() && method == http.MethodHead {
			return o
		}
	}
	return nil
}

// head reports whether the operation answers HEAD as well; a stream doesn't.
func (o *operation) head() bool {
	return o.method == http.MethodGet && !strings.HasPrefix(o.id, mcpStream)
}

// allow is the value of the header Allow.
func (to *route) allow() string {
	var methods []string
	for _, o := range to.operations {
		methods = append(methods, o.method)
		if o.head() {
			methods = append(methods, http.MethodHead)
		}
	}
	return strings.Join(methods, ", ")
}

// needs is the least that any operation of the path requires: a caller without it does not learn its methods.
func (to *route) needs() need {
	least := admin
	for _, o := range to.operations {
		least = min(least, o.needs)
	}
	return least
}

// asksForOAuth reports whether a client asks for a path of OAuth, which MCP clients do where they got a 401:
// some show their user the answer to that request only.
func asksForOAuth(path string) bool {
	return slices.Contains([]string{"/register", "/authorize", "/token"}, path) ||
		strings.HasPrefix(path, "/.well-known/oauth-") || strings.HasPrefix(path, "/.well-known/openid-configuration")
}

// serve authenticates a request, reads its query and passes it to the handler of its operation.
func (a *API) serve(w http.ResponseWriter, r *http.Request) {
	to, values := a.find(r)
	if to == nil {
		text := "not found: " + r.URL.Path + "; GET / says what is where"
		if asksForOAuth(r.URL.Path) {
			text = "this server has no OAuth; have the client send the header Authorization: Bearer cat_..., with a token of `catalogd token create`"
		}
		mcpserver.WriteError(w, http.StatusNotFound, text)
		return
	}
	o := to.operation(r.Method)
	if o == nil {
		if _, ok := a.authenticate(w, r, to.needs()); ok {
			mcpserver.NotAllowed(w, to.allow())
		}
		return
	}
	c, ok := a.authenticate(w, r, o.needs)
	if !ok {
		return
	}
	if !o.loose {
		if err := o.readQuery(r); err != nil {
			mcpserver.WriteError(w, http.StatusBadRequest, err.Error())
			return
		}
	}
	for i, name := range to.names {
		r.SetPathValue(name, values[i])
	}
	o.handle(w, r, c)
}

// readQuery parses the query of a request into r.Form. An unknown parameter is an error: a misspelt one must
// not select everything.
func (o *operation) readQuery(r *http.Request) (err error) {
	if r.Form, err = url.ParseQuery(r.URL.RawQuery); err != nil {
		return errors.New("the query can't be read: " + err.Error())
	}
	var known []string
	for _, p := range o.params {
		if p.in == inQuery {
			known = append(known, p.name)
		}
	}
	for name, values := range r.Form {
		i := slices.IndexFunc(o.params, func(p parameter) bool { return p.in == inQuery && p.name == name })
		switch {
		case i < 0 && len(known) == 0:
			return fmt.Errorf("unknown parameter %q; there is none here", registry.Shown(name))
		case i < 0:
			return fmt.Errorf("unknown parameter %q; there is %s", registry.Shown(name), strings.Join(known, ", "))
		case len(values) > 1 && !o.params[i].many:
			return fmt.Errorf("the parameter %s is given more than once", name)
		case slices.Contains(values, "") && !o.params[i].empty:
			return fmt.Errorf("the parameter %s is empty; leave it out", name)
		}
	}
	return nil
}

// addressed returns the branch that a request is about, empty if it is about none.
func (a *API) addressed(r *http.Request) string {
	to, values := a.find(r)
	switch {
	case to == nil:
		return ""
	case to.path == defaultMCP:
		return "default"
	case strings.HasPrefix(to.path, "/branches/{branch}"):
		return values[0]
	}
	return ""
}
