package binding

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/egress"
	"github.com/catalogd/catalogd/internal/jq"
	"github.com/catalogd/catalogd/internal/secret"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// httpKind sends one request to a service.
type httpKind struct {
	method  string
	url     urlTemplate
	headers []setting
	query   []setting
	join    joins
	// values are those of headers and query, whose secrets are taken out of answers.
	values  map[string]secret.Value
	body    *body
	service trust.Target
	root    string
	answers
	pages *pages
	retry retry
	// write says that the tool has a side effect.
	write bool
}

func newHTTP(c *check) kind {
	h := c.tool.Binding.HTTP
	const field = "binding.http"
	join := newJoins(c, field+".join", h.Join)
	k := &httpKind{
		method:  h.Method,
		url:     newURLTemplate(c, field+".url", h.URL, join),
		join:    join,
		root:    c.root,
		answers: newAnswers(c, field, h),
		write:   c.tool.Effect == registry.Write,
	}
	c.oneOf(field+".method", h.Method, "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
	k.headers = c.headers(field+".headers", h.Headers, join)
	k.query = newQuery(c, field+".query", h.Query, join, k.url)
	placed := map[string]bool{}
	k.url.used(c, placed)
	for _, s := range slices.Concat(k.headers, k.query) {
		s.used(c, placed)
	}
	used := maps.Clone(placed)
	k.body = newBody(c, field+".body", h.Body, placed, join)
	k.pages = newPages(c, field+".pages", h, k.url, k.query)
	k.retry = newRetry(c, field+".retry", h)
	if k.body != nil {
		if bodyless(h.Method) {
			c.errorf(problem.BadBinding, field+".body", "a %s request has no body; take it away, or use another method", h.Method)
		}
		k.body.used(c, used)
	}
	if k.body != nil && k.body.kind != "json" {
		placed = used
	}
	k.join.unused(c, field+".join", placed)
	c.unused(used, "put it into the URL ({?name}), into query or into the body")
	k.values = map[string]secret.Value{}
	target := trust.Target{Kind: trust.HTTP, URL: &k.url.fixed, Headers: []string{}}
	fromCall := map[string]bool{}
	for _, s := range k.headers {
		target.Headers = append(target.Headers, s.name)
		if !egress.BaseHeader(s.name) {
			s.used(c, fromCall)
		}
		k.values["header "+s.name] = s.value
	}
	for _, s := range k.query {
		k.values["query parameter "+s.name] = s.value
	}
	target.FromCall = sortedKeys(fromCall)
	target.Secrets = secret.References(k.values)
	k.service = target
	return k
}

func (k *httpKind) target() (trust.Target, bool) { return k.service, true }

func (k *httpKind) bind(tr trust.Trust, deps Deps) registry.Invoker {
	h := &httpInvoker{httpKind: k, jq: deps.JQ}
	if h.jq == nil {
		h.jq = new(jq.InProcess)
	}
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
	jq           jq.Runner
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
	make := h.client
	if write {
		make = h.once
	}
	client, err := make()
	if err != nil {
		return nil, nothingRan(registry.BindingFailed, "the tool's service may not be reached; the operator's log says why", err)
	}
	build := func() (*http.Request, error) {
		req, err := h.request(ctx, call.Args, h.resolve, false)
		if err == nil && write {
			req.Header.Set(keyHeader, headerOfKey(key))
		}
		return req, err
	}
	if h.pages != nil {
		return h.collect(ctx, client, call.To, build)
	}
	res, err := h.send(ctx, client, call.To, build)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	return h.answer(ctx, res, write)
}

// failure distinguishes a refusal by trust, which only an operator can change, from a service that does not
// answer.
func (h *httpInvoker) failure(ctx context.Context, err error) error {
	err = withoutSecrets(err, h.values, h.root)
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

func (h *httpInvoker) Plan(args contract.Args) (registry.Plan, error) {
	req, err := h.request(context.Background(), args, masked, true)
	if err != nil {
		return registry.Plan{}, err
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
