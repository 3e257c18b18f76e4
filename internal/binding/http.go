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
	"github.com/catalogd/catalogd/internal/egress"
	"github.com/catalogd/catalogd/internal/httpstatus"
	"github.com/catalogd/catalogd/internal/placeholder"
	"github.com/catalogd/catalogd/internal/secret"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// httpKind sends one request to a service.
type httpKind struct {
	method  string
	url     urlTemplate
	headers map[string]secret.Value
	body    *body
	service trust.Target
	root    string
	limit   int64
	output  string // text, json or content
	raw     bool
	// write says that the tool has a side effect.
	write bool
}

func newHTTP(c *check) kind {
	h := c.tool.Binding.HTTP
	const field = "binding.http"
	k := &httpKind{
		method: h.Method,
		url:    newURLTemplate(c, field+".url", h.URL),
		root:   c.root,
		limit:  c.maxOutput(field+".maxOutput", h.MaxOutput),
		output: h.Output,
		raw:    c.raw(field+".raw", h.Raw, h.Output == "json"),
		write:  c.tool.Effect == registry.Write,
	}
	c.oneOf(field+".method", h.Method, "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
	c.output(field+".output", h.Output, "text", "json", "content")
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
	k.service = trust.Target{Kind: trust.HTTP, URL: &k.url.fixed, Headers: append([]string{}, sortedKeys(k.headers)...), Secrets: secret.References(k.headers)}
	return k
}

// headers checks names and values, and returns them by canonical name.
func (c *check) headers(field string, declared map[string]registry.Value) map[string]secret.Value {
	out := map[string]secret.Value{}
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
		case canonical == keyHeader && c.tool.Effect == registry.Write:
			c.errorf(problem.BadBinding, at, "the header %s carries the idempotency key of each call of a tool with effect: \"write\"; take it away", canonical)
		case twice:
			c.errorf(problem.BadBinding, at, "the header %s is declared twice, in different case", canonical)
		case !httpguts.ValidHeaderFieldValue(v.Literal) || !httpguts.ValidHeaderFieldValue(v.Prefix):
			c.errorf(problem.BadBinding, at, "the value of %s holds a line break or another character that no header can carry", canonical)
		}
		for _, p := range placeholder.Parse(v.Literal+v.Prefix, func(string) bool { return false }) {
			if _, ok := c.tool.Args.Field(p.Arg); ok {
				c.errorf(problem.BadPlaceholder, at, "{%s} would be sent as it stands: a header takes no arguments", p.Arg)
			}
		}
		out[canonical] = v
	}
	return out
}

func (k *httpKind) target() (trust.Target, bool) { return k.service, true }

func (k *httpKind) bind(tr trust.Trust, deps Deps) registry.Invoker {
	h := &httpInvoker{httpKind: k}
	client := func(cfg egress.ClientConfig) func() (*http.Client, error) {
		return sync.OnceValues(func() (*http.Client, error) {
			cfg.MaxConnections = tr.MaxConnections()
			c, err := egress.Client(tr, k.service, cfg)
			if !cfg.Once {
				h.made.Store(c)
			}
			return c, err
		})
	}
	h.client = client(egress.ClientConfig{Redirect: deps.Redirect})
	h.once = client(egress.ClientConfig{Once: true})
	return h
}

type httpInvoker struct {
	*httpKind
	// client is for requests that may be retried, once for those of an attempt; both are created at their
	// first request.
	client, once func() (*http.Client, error)
	made         atomic.Pointer[http.Client] // client's; nil before that
}

// Close closes idle connections. Requests in flight finish.
func (h *httpInvoker) Close() {
	if c := h.made.Load(); c != nil {
		c.CloseIdleConnections()
	}
}

func (h *httpInvoker) Invoke(ctx context.Context, call registry.Invocation) (*registry.Result, error) {
	key, write, err := keyOf(call)
	if err != nil {
		return nil, err
	}
	req, err := h.request(ctx, call.Args)
	if err != nil {
		return nil, err
	}
	const unmade = "the request could not be made; the operator's log says why"
	for name, v := range h.headers {
		value, err := v.Resolve(h.root)
		if err != nil {
			return nil, nothingRan(registry.BindingFailed, unmade, fmt.Errorf("header %s: %w", name, err))
		}
		if !httpguts.ValidHeaderFieldValue(value) {
			return nil, nothingRan(registry.BindingFailed, unmade, fmt.Errorf("header %s: the secret holds a line break or another character that no header can carry", name))
		}
		req.Header.Set(name, value)
	}
	make := h.client
	if write {
		make = h.once
		req.Header.Set(keyHeader, headerOfKey(key))
	}
	client, err := make()
	if err != nil {
		return nil, nothingRan(registry.BindingFailed, "the tool's service may not be reached; the operator's log says why", err)
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, failure(ctx, err)
	}
	defer res.Body.Close()
	return h.answer(ctx, res, write)
}

// request builds the request without the declared headers.
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
		return nil, nothingRan(registry.Internal, "the request could not be made", err)
	}
	req.Header.Set("User-Agent", "catalogd")
	if h.output != "text" {
		req.Header.Set("Accept", "application/json")
	}
	if h.body != nil {
		req.Header.Set("Content-Type", h.body.contentType)
	}
	return req, nil
}

// failure distinguishes a refusal by trust, which only an operator can change, from a service that does not
// answer.
func failure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ended(ctx, err)
	}
	e := &registry.Error{Code: registry.Unavailable, Msg: "the tool's service does not answer; try again later", Err: err, Unsent: unsent(err)}
	var address *egress.AddressError
	var outside *egress.OutsideError
	switch {
	case errors.As(err, &address):
		e.Code, e.Msg = registry.BindingFailed, "the service's address is not one that this tool may reach; the operator's log says why"
	case errors.As(err, &outside):
		e.Code, e.Msg = registry.BindingFailed, "the service sends the request on to a place that this tool may not reach; the operator's log says why"
	}
	return e
}

// answer converts a response to a result. A status of 400 and above is a result that a model can act on, and
// so is a lower one without an answer: a redirect without a target, or one not followed because the request
// has a side effect.
func (h *httpInvoker) answer(ctx context.Context, res *http.Response, write bool) (*registry.Result, error) {
	outcome := httpstatus.Of(res.StatusCode)
	failed := res.StatusCode >= 300 || res.StatusCode < 200
	// Only the beginning of an error is shown, so its size does not matter.
	if !failed && !write && res.ContentLength > h.limit {
		return nil, askLess("the service's answer", h.limit)
	}
	b, err := io.ReadAll(io.LimitReader(res.Body, h.limit+1))
	large := int64(len(b)) > h.limit
	if large && write && err == nil {
		// A service may stop working when its connection is closed, and only the end of the body shows that
		// it has finished.
		_, err = io.Copy(io.Discard, res.Body)
	}
	// The status alone decides that a request with a side effect was rejected, even if its body can't be
	// read.
	if err != nil && (!write || outcome != registry.OutcomeFailed) {
		return nil, failure(ctx, err)
	}
	mask := secret.MaskerFor(h.headers, h.root)
	content := mask.Replace(string(b))
	switch {
	case failed:
		status := "the service answered HTTP " + strings.TrimSpace(plain(res.Status))
		for _, name := range []string{"Retry-After", "Location"} {
			if value := res.Header.Get(name); value != "" && (name != "Location" || write) {
				status += "\n" + name + ": " + head(plain(mask.Replace(value)))
			}
		}
		r := textResult(true, status, head(plain(content)))
		r.Unclear = outcome == registry.OutcomeUnclear
		return r, nil
	case large && write:
		return nil, hidden(registry.OutputTooLarge, outcome, tooLarge("the service's answer", h.limit))
	case large:
		return nil, askLess("the service's answer", h.limit)
	}
	kind := h.output
	if h.method == http.MethodHead || res.StatusCode == http.StatusNoContent {
		kind = "text" // there is no body
	}
	r, err := outputResult(content, "the service's answer", kind, h.raw, write && outcome == registry.OutcomeSucceeded)
	if err != nil {
		return nil, err
	}
	r.Unclear = outcome == registry.OutcomeUnclear
	return r, nil
}

func (h *httpInvoker) Plan(args contract.Args) (registry.Plan, error) {
	req, err := h.request(context.Background(), args)
	if err != nil {
		return registry.Plan{}, err
	}
	for name, v := range h.headers {
		req.Header.Set(name, v.Masked())
	}
	if h.write {
		req.Header.Set(keyHeader, someKey)
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
