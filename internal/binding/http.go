package binding

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/net/http/httpguts"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/reach"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// httpKind sends one request to a service.
type httpKind struct {
	method  string
	url     urlTemplate
	headers map[string]reach.Value
	body    *body
	service trust.Target
	root    string
	limit   int64
	json    bool
	raw     bool
}

func newHTTP(c *check) kind {
	h := c.tool.Binding.HTTP
	const field = "binding.http"
	k := &httpKind{
		method: h.Method,
		url:    newURLTemplate(c, field+".url", h.URL),
		root:   c.root,
		limit:  c.maxOutput(field+".maxOutput", h.MaxOutput),
		json:   h.Output == "json",
		raw:    c.raw(field+".raw", h.Raw, h.Output == "json"),
	}
	c.oneOf(field+".method", h.Method, "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
	c.oneOf(field+".output", h.Output, "text", "json")
	inURL := map[string]bool{}
	k.url.used(inURL)
	used := maps.Clone(inURL)
	k.body = newBody(c, field+".body", h.Body, inURL)
	if k.body != nil {
		if bodyless(h.Method) {
			c.errorf(problem.BadBinding, field+".body", "a %s request has no body; take it away, or use another method", h.Method)
		}
		k.body.used(c, used)
	}
	k.headers = c.headers(field+".headers", h.Headers)
	c.unused(used, "put it into the URL ({?name}) or into the body")
	k.service = trust.Target{Kind: trust.HTTP, URL: &k.url.fixed, Headers: append([]string{}, sortedKeys(k.headers)...)}
	return k
}

// headers checks names and values, and returns them by canonical name.
func (c *check) headers(field string, declared map[string]registry.Value) map[string]reach.Value {
	out := map[string]reach.Value{}
	values := c.values(field, declared)
	for _, name := range sortedKeys(values) {
		at := field + "." + name
		v := values[name]
		canonical := http.CanonicalHeaderKey(name)
		_, twice := out[canonical]
		switch {
		case !httpguts.ValidHeaderFieldName(name):
			c.errorf(problem.BadBinding, at, "%q is not a header's name", name)
		case reservedHeader(canonical):
			c.errorf(problem.BadBinding, at, "the header %s is the transport's own and can't be set", canonical)
		case twice:
			c.errorf(problem.BadBinding, at, "the header %s is declared twice, in different case", canonical)
		case !httpguts.ValidHeaderFieldValue(v.Literal) || !httpguts.ValidHeaderFieldValue(v.Prefix):
			c.errorf(problem.BadBinding, at, "the value of %s holds a line break or another character that no header can carry", canonical)
		}
		for _, p := range parseElement(v.Literal+v.Prefix, func(string) bool { return false }) {
			if _, ok := c.tool.Args.Field(p.arg); ok {
				c.errorf(problem.BadPlaceholder, at, "{%s} would be sent as it stands: a header takes no arguments", p.arg)
			}
		}
		out[canonical] = v
	}
	return out
}

func (k *httpKind) target() (trust.Target, bool) { return k.service, true }

func (k *httpKind) bind(tr trust.Trust, deps Deps) registry.Invoker {
	h := &httpInvoker{httpKind: k}
	h.client = sync.OnceValues(func() (*http.Client, error) {
		c, err := reach.Client(tr, k.service, reach.ClientConfig{MaxConnections: tr.MaxConnections(), Redirect: deps.Redirect})
		h.made.Store(c)
		return c, err
	})
	return h
}

type httpInvoker struct {
	*httpKind
	client func() (*http.Client, error) // made by the first call
	made   atomic.Pointer[http.Client]  // nil before that
}

// Close drops the connections that are kept for the next request. Requests that are under way finish.
func (h *httpInvoker) Close() error {
	if c := h.made.Load(); c != nil {
		c.CloseIdleConnections()
	}
	return nil
}

func (h *httpInvoker) Invoke(ctx context.Context, args contract.Args) (*registry.Result, error) {
	req, err := h.request(ctx, args)
	if err != nil {
		return nil, err
	}
	for name, v := range h.headers {
		value, err := v.Resolve(h.root)
		if err != nil {
			return nil, &registry.Error{Code: registry.BindingFailed, Msg: "the request could not be made; the operator's log says why", Err: fmt.Errorf("header %s: %w", name, err)}
		}
		if !httpguts.ValidHeaderFieldValue(value) {
			return nil, &registry.Error{Code: registry.BindingFailed, Msg: "the request could not be made; the operator's log says why", Err: fmt.Errorf("header %s: the secret holds a line break or another character that no header can carry", name)}
		}
		req.Header.Set(name, value)
	}
	client, err := h.client()
	if err != nil {
		return nil, &registry.Error{Code: registry.BindingFailed, Msg: "the tool's service may not be reached; the operator's log says why", Err: err}
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, failure(ctx, err)
	}
	defer res.Body.Close()
	return h.answer(ctx, res)
}

// request is the whole request but for the declared headers.
func (h *httpKind) request(ctx context.Context, args contract.Args) (*http.Request, error) {
	u, err := h.url.expand(args)
	if err != nil {
		return nil, err
	}
	var content io.Reader
	if h.body != nil {
		encoded, err := h.body.encode(args)
		if err != nil {
			return nil, err
		}
		content = strings.NewReader(encoded)
	}
	req, err := http.NewRequestWithContext(ctx, h.method, u.String(), content)
	if err != nil {
		return nil, &registry.Error{Code: registry.Internal, Msg: "the request could not be made", Err: err}
	}
	req.Header.Set("User-Agent", "catalogd")
	if h.json {
		req.Header.Set("Accept", "application/json")
	}
	if h.body != nil {
		req.Header.Set("Content-Type", h.body.contentType)
	}
	return req, nil
}

// failure tells a refusal by trust, which only an operator can change, from a service that does not answer.
func failure(ctx context.Context, err error) error {
	var address *reach.AddressError
	var outside *reach.OutsideError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &address):
		return &registry.Error{Code: registry.BindingFailed, Msg: "the service's address is not one that this tool may reach; the operator's log says why", Err: err}
	case errors.As(err, &outside):
		return &registry.Error{Code: registry.BindingFailed, Msg: "the service sends the request on to a place that this tool may not reach; the operator's log says why", Err: err}
	}
	return &registry.Error{Code: registry.Unavailable, Msg: "the tool's service does not answer; try again later", Err: err}
}

// answer makes a result of a response. A status of 400 and above is a result that a model can act on, and so is one
// below that is no answer: a redirect that leads nowhere.
func (h *httpInvoker) answer(ctx context.Context, res *http.Response) (*registry.Result, error) {
	failed := res.StatusCode >= 300
	// Of an error only the beginning is shown, so a large one is not too large.
	if !failed && res.ContentLength > h.limit {
		return nil, tooLarge("the service's answer", h.limit)
	}
	b, err := io.ReadAll(io.LimitReader(res.Body, h.limit+1))
	if err != nil {
		return nil, failure(ctx, err)
	}
	content := reach.Mask(h.headers, h.root).Replace(string(b))
	if failed {
		status := "the service answered HTTP " + strings.TrimSpace(plain(res.Status))
		if after := res.Header.Get("Retry-After"); after != "" {
			status += "\nRetry-After: " + head(plain(after))
		}
		return textResult(true, status, head(plain(content))), nil
	}
	if int64(len(b)) > h.limit {
		return nil, tooLarge("the service's answer", h.limit)
	}
	if h.json && h.method != http.MethodHead && res.StatusCode != http.StatusNoContent {
		return jsonResult(content, "the service's answer"), nil
	}
	return textResult(false, shown(content, h.raw)), nil
}

func (h *httpInvoker) Plan(args contract.Args) (registry.Plan, error) {
	req, err := h.request(context.Background(), args)
	if err != nil {
		return registry.Plan{}, err
	}
	for name, v := range h.headers {
		req.Header.Set(name, v.Masked())
	}
	plan := registry.Plan{Kind: "http", Method: h.method, URL: req.URL.String(), Headers: req.Header}
	if req.Body != nil {
		content, err := io.ReadAll(req.Body)
		if err != nil {
			return registry.Plan{}, err
		}
		plan.Body = string(content)
	}
	return plan, nil
}
