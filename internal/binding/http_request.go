package binding

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/placeholder"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

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

// request builds the request; fixed returns the value of a setting without arguments, and shown says that the
// request is only for a plan.
func (h *httpKind) request(ctx context.Context, args contract.Args, fixed func(setting) (string, error), shown bool) (*http.Request, error) {
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
		encoded, contentType, err := h.body.encode(args, shown)
		if err != nil {
			return nil, err
		}
		content = strings.NewReader(encoded)
		header.Set("Content-Type", contentType)
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
