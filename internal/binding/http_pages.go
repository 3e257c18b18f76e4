package binding

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/catalogd/catalogd/internal/egress"
	"github.com/catalogd/catalogd/internal/jq"
	"github.com/catalogd/catalogd/internal/placeholder"
	"github.com/catalogd/catalogd/internal/secret"
	"github.com/catalogd/catalogd/internal/strictjson"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// pages says how the further pages of an answer are found.
type pages struct {
	link      bool
	parameter string // that takes a cursor; empty where the next page has a URL
	max       int
	// program makes {items, next} of a page.
	program string
}

func newPages(c *check, field string, h *registry.HTTP, u urlTemplate, query []setting) *pages {
	d := h.Pages
	if d == nil {
		return nil
	}
	c.program(field+".items", d.Items)
	c.program(field+".url", d.URL)
	c.program(field+".cursor", d.Cursor)
	ways := 0
	for _, set := range []bool{d.Link, d.URL != "", d.Cursor != ""} {
		if set {
			ways++
		}
	}
	switch {
	case h.Method != "GET" || c.tool.Effect != registry.Read:
		c.errorf(problem.BadBinding, field, `pages are for a GET of a tool with effect: "read"`)
	case h.Output != "json" || h.Select != "":
		c.errorf(problem.BadBinding, field, `pages are of JSON and have items; declare output: "json", and take select away`)
	case d.Items == "":
		c.errorf(problem.BadBinding, field+".items", "items is missing: a jq program from a page to the list of its items")
	case ways != 1:
		c.errorf(problem.BadBinding, field, "pages have exactly one of link, url and cursor, and these have %d", ways)
	case (d.Parameter != "") != (d.Cursor != ""):
		c.errorf(problem.BadBinding, field+".parameter", "cursor and parameter go together: the one is the value of the other")
	case d.Max < 1 || d.Max > 100:
		c.errorf(problem.BadBinding, field+".max", "%d is not a number of pages from 1 to 100", d.Max)
	}
	for _, s := range query {
		if s.name == d.Parameter && s.text == nil {
			c.errorf(problem.BadBinding, field+".parameter", "the query parameter %q has a fixed value, and the cursor would replace it", s.name)
		}
	}
	next := "null"
	if d.URL+d.Cursor != "" {
		next = d.URL + d.Cursor
	}
	p := &pages{link: d.Link, parameter: d.Parameter, max: d.Max}
	// Each on a line of its own, so that a comment ends where its program does.
	p.program = fmt.Sprintf("{items: [limit(1; (%s\n))][0], next: [limit(1; (%s\n))][0]}", d.Items, next)
	if !c.problems.HasErrors() {
		c.program(field+".items", p.program)
	}
	return p
}

// collect asks for one page after the other and joins their items. An answer that is an error ends it, and is
// the result: a part of the items would pass for all of them.
func (h *httpInvoker) collect(ctx context.Context, client *http.Client, to registry.Listener, build func() (*http.Request, error)) (*registry.Result, error) {
	items, left := []json.RawMessage{}, h.limit
	seen := map[string]bool{}
	var next *url.URL // nil for the first page
	more := true
	for n := 0; more && n < h.pages.max; n++ {
		var at *url.URL
		res, err := h.send(ctx, client, to, func() (*http.Request, error) {
			req, err := build()
			if err == nil {
				if next != nil {
					req.URL, req.Host = next, next.Host
				}
				at = req.URL
			}
			return req, err
		})
		if err != nil {
			return nil, err
		}
		seen[at.String()] = true
		page, failed, err := h.page(ctx, res, &left)
		if err != nil || failed != nil {
			return failed, err
		}
		items = append(items, page.Items...)
		if next, err = h.next(at, res, page.Next); err != nil {
			return nil, err
		}
		if more = next != nil; more && seen[next.String()] {
			return nil, &registry.Error{Code: registry.ResultInvalid, Msg: fmt.Sprintf("page %d of the service's answer names a page as the next one that was read already", n+1)}
		}
	}
	out, err := json.Marshal(struct {
		Items []json.RawMessage `json:"items"`
		More  bool              `json:"more"`
	}{items, more})
	if err != nil {
		return nil, &registry.Error{Code: registry.Internal, Msg: "the pages could not be joined", Err: err}
	}
	if int64(len(out)) > h.limit {
		return nil, askLess("the service's answer, all pages together,", h.limit)
	}
	return outputResult(string(out), "the service's answer", "json", false, false)
}

// onePage is a page as its program reads it.
type onePage struct {
	Items []json.RawMessage `json:"items"`
	Next  any               `json:"next"`
}

// page reads one answer and takes its size from left. failed is the result where the answer is an error.
func (h *httpInvoker) page(ctx context.Context, res *http.Response, left *int64) (page onePage, failed *registry.Result, err error) {
	defer res.Body.Close()
	if !h.succeeded(res.StatusCode) {
		failed, err = h.answer(ctx, res, false)
		return page, failed, err
	}
	content, large, err := h.read(res, *left, false, false)
	switch {
	case err != nil:
		return page, nil, h.failure(ctx, err)
	case large:
		return page, nil, askLess("the service's answer, all pages together,", h.limit)
	}
	*left -= int64(len(content))
	if strings.TrimSpace(content) == "" {
		return page, nil, nil // nothing, and nothing after it
	}
	invalid := func(says string, err error) error {
		return &registry.Error{Code: registry.ResultInvalid, Msg: "a page of the service's answer " + says, Err: err}
	}
	in, err := strictjson.Unambiguous([]byte(strings.TrimSpace(strings.ToValidUTF8(content, "\uFFFD"))))
	if err != nil {
		return page, nil, invalid("was to be one JSON value, and is not", err)
	}
	out, err := h.jq.Run(ctx, h.pages.program, in, maxSelected)
	switch {
	case ctx.Err() != nil:
		return page, nil, ctx.Err()
	case errors.As(err, new(jq.TooLargeError)):
		return page, nil, askLess("the service's answer, all pages together,", min(h.limit, maxSelected))
	case errors.As(err, new(jq.UnavailableError)):
		return page, nil, &registry.Error{Code: registry.Unavailable, Msg: "the programs of the tool's pages could not be run; try again", Err: err}
	case err != nil:
		return page, nil, invalid("is not what the programs of the tool's pages expect; the operator's log says why", err)
	}
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	decoder.UseNumber()
	if err := decoder.Decode(&page); err != nil {
		return page, nil, invalid("has no list where its items are", err)
	}
	return page, nil, nil
}

// next returns the URL of the page after the one at; nil after the last. Any other than one of the tool's own
// target is an error: the trust covers nothing else.
func (h *httpInvoker) next(at *url.URL, res *http.Response, value any) (*url.URL, error) {
	text := ""
	switch {
	case h.pages.link:
		text = nextLink(res.Header.Values("Link"))
	case value == nil:
	default:
		var ok bool
		if text, ok = placeholder.Text(value); !ok {
			return nil, &registry.Error{Code: registry.ResultInvalid, Msg: "what follows a page of the service's answer is neither a text, a number nor null"}
		}
	}
	if text == "" {
		return nil, nil
	}
	if name := h.pages.parameter; name != "" {
		return withParameter(at, name, text), nil
	}
	to, err := at.Parse(text)
	if err == nil {
		to.Fragment, to.RawFragment = "", ""
		to.RawQuery = strings.ReplaceAll(to.RawQuery, " ", "%20") // which would end the target of the request
		err = egress.Within(h.url.fixed, to)
	}
	if err != nil {
		mask := secret.MaskerFor(h.values, h.root)
		return nil, &registry.Error{
			Code: registry.BindingFailed, Msg: "the service names a next page that this tool may not reach; the operator's log says why",
			Err: fmt.Errorf("the next page %s: %w", head(plain(mask.Replace(text))), err),
		}
	}
	// The service doesn't repeat what it was sent as a secret, or the page has it masked.
	for _, s := range h.query {
		if s.value.Secret != "" {
			value, err := h.resolve(s)
			if err != nil {
				return nil, err
			}
			to = withParameter(to, s.name, value)
		}
	}
	return to, nil
}

// withParameter returns the URL with this value of the query parameter, and no other.
func withParameter(u *url.URL, name, value string) *url.URL {
	var pairs []string
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		key, _, _ := strings.Cut(pair, "=")
		if decoded, err := url.QueryUnescape(key); pair != "" && (err != nil || decoded != name) {
			pairs = append(pairs, pair)
		}
	}
	out := *u
	out.RawQuery = strings.Join(append(pairs, encode(name)+"="+encode(value)), "&")
	return &out
}

// nextLink returns the target of the link with rel="next" in the values of the header Link (RFC 8288, 3);
// empty without one.
func nextLink(values []string) string {
	for _, value := range values {
		for {
			_, rest, ok := strings.Cut(value, "<")
			if !ok {
				break
			}
			target, rest, ok := strings.Cut(rest, ">")
			if !ok {
				break
			}
			parameters, after := beforeComma(rest)
			value = after
			for parameter := range strings.SplitSeq(parameters, ";") {
				name, rel, _ := strings.Cut(parameter, "=")
				if !strings.EqualFold(strings.TrimSpace(name), "rel") {
					continue
				}
				for one := range strings.FieldsSeq(strings.Trim(strings.TrimSpace(rel), `"`)) {
					if strings.EqualFold(one, "next") {
						return strings.TrimSpace(target)
					}
				}
			}
		}
	}
	return ""
}

// beforeComma splits at the first comma that is not quoted.
func beforeComma(s string) (before, after string) {
	quoted := false
	for i := range len(s) {
		switch {
		case s[i] == '"':
			quoted = !quoted
		case s[i] == ',' && !quoted:
			return s[:i], s[i+1:]
		}
	}
	return s, ""
}
