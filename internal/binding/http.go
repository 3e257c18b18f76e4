package binding

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
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
	headers []setting
	query   []setting
	join    joins
	// values are those of headers and query, whose secrets are taken out of answers.
	values  map[string]secret.Value
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
	join := newJoins(c, field+".join", h.Join)
	k := &httpKind{
		method: h.Method,
		url:    newURLTemplate(c, field+".url", h.URL, join),
		join:   join,
		root:   c.root,
		limit:  c.maxOutput(field+".maxOutput", h.MaxOutput),
		output: h.Output,
		raw:    c.raw(field+".raw", h.Raw, h.Output == "json"),
		write:  c.tool.Effect == registry.Write,
	}
	c.oneOf(field+".method", h.Method, "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
	c.output(field+".output", h.Output, "text", "json", "content")
	k.headers = c.headers(field+".headers", h.Headers, join)
	k.query = newQuery(c, field+".query", h.Query, join, k.url)
	placed := map[string]bool{}
	k.url.used(c, placed)
	for _, s := range slices.Concat(k.headers, k.query) {
		s.used(c, placed)
	}
	used := maps.Clone(placed)
	k.body = newBody(c, field+".body", h.Body, placed, join)
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

// headers checks names and values, and returns them by canonical name, sorted.
func (c *check) headers(field string, declared map[string]registry.Value, join joins) (out []setting) {
	values := c.values(field, declared)
	for _, name := range sortedKeys(values) {
		at := field + "." + name
		v := values[name]
		canonical := http.CanonicalHeaderKey(name)
		switch {
		case !httpguts.ValidHeaderFieldName(name):
			c.errorf(problem.BadBinding, at, "%q is not a header's name", name)
		case reservedHeader(canonical):
			c.errorf(problem.BadBinding, at, "the header %s is the transport's own and can't be set", canonical)
		case canonical == keyHeader && c.tool.Effect == registry.Write:
			c.errorf(problem.BadBinding, at, "the header %s carries the idempotency key of each call of a tool with effect: \"write\"; take it away", canonical)
		case slices.ContainsFunc(out, func(s setting) bool { return s.name == canonical }):
			c.errorf(problem.BadBinding, at, "the header %s is declared twice, in different case", canonical)
		case !httpguts.ValidHeaderFieldValue(v.Literal) || !httpguts.ValidHeaderFieldValue(v.Prefix):
			c.errorf(problem.BadBinding, at, "the value of %s holds a line break or another character that no header can carry", canonical)
		}
		for _, p := range placeholder.Parse(v.Prefix, dotted) {
			if p.Arg != "" {
				c.errorf(problem.BadPlaceholder, at, "{%s} would be sent as it stands: what stands before a secret takes no arguments", p.Arg)
			}
		}
		s := c.newSetting(at, canonical, v, join, false)
		if s.text != nil && fixedHeader(canonical) {
			c.errorf(problem.BadPlaceholder, at, "{%s} can't be in %s: a call must not choose who is spoken for, or what the request is; write a fixed value or a secret", s.text.First(), canonical)
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b setting) int { return strings.Compare(a.name, b.name) })
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
	req, err := h.request(ctx, call.Args, h.resolve)
	if err != nil {
		return nil, err
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
		if of := (*url.Error)(nil); errors.As(err, &of) {
			of.URL, _, _ = strings.Cut(of.URL, "?") // its query may hold a secret
		}
		return nil, failure(ctx, err)
	}
	defer res.Body.Close()
	return h.answer(ctx, res, write)
}

// resolve returns a setting's fixed value, or that of its secret.
func (h *httpInvoker) resolve(s setting) (string, error) {
	value, err := s.value.Resolve(h.root)
	if err == nil && !httpguts.ValidHeaderFieldValue(value) {
		err = errors.New("the secret holds a line break or another character that no header can carry")
	}
	if err != nil {
		return "", nothingRan(registry.BindingFailed, "the request could not be made; the operator's log says why", fmt.Errorf("%s: %w", s.name, err))
	}
	return value, nil
}

// masked returns a setting's fixed value, or *** in the place of its secret.
func masked(s setting) (string, error) { return s.value.Masked(), nil }

// request builds the request; fixed returns the value of a setting without arguments.
func (h *httpKind) request(ctx context.Context, args contract.Args, fixed func(setting) (string, error)) (*http.Request, error) {
	u, err := h.url.expand(args)
	if err != nil {
		return nil, err
	}
	var refused violations
	if err := h.addQuery(u, &refused, args, fixed); err != nil {
		return nil, err
	}
	header := http.Header{"User-Agent": {"catalogd"}}
	if h.output != "text" {
		header.Set("Accept", "application/json")
	}
	var content io.Reader
	if h.body != nil {
		encoded, err := h.body.encode(args)
		if err != nil {
			return nil, err
		}
		content = strings.NewReader(encoded)
		header.Set("Content-Type", h.body.contentType)
	}
	for _, s := range h.headers {
		if s.text == nil {
			value, err := fixed(s)
			if err != nil {
				return nil, err
			}
			header.Set(s.name, value)
			continue
		}
		for _, value := range s.expand(&refused, args, h.join) {
			s.checkHeader(&refused, value)
			header.Set(s.name, value)
		}
	}
	if err := refused.err(); err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, h.method, u.String(), content)
	if err != nil {
		return nil, nothingRan(registry.Internal, "the request could not be made", err)
	}
	req.Header = header
	return req, nil
}

// addQuery adds the declared query parameters.
func (h *httpKind) addQuery(u *url.URL, refused *violations, args contract.Args, fixed func(setting) (string, error)) error {
	var pairs []string
	if u.RawQuery != "" {
		pairs = append(pairs, u.RawQuery)
	}
	for _, s := range h.query {
		values := s.expand(refused, args, h.join)
		if s.text == nil {
			value, err := fixed(s)
			if err != nil {
				return err
			}
			values = []string{value}
		}
		for _, v := range values {
			pairs = append(pairs, encode(s.name)+"="+encode(v))
		}
	}
	u.RawQuery = strings.Join(pairs, "&")
	return nil
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
	mask := secret.MaskerFor(h.values, h.root)
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
	req, err := h.request(context.Background(), args, masked)
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
