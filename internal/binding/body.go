package binding

import (
	"mime"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/placeholder"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// body builds a request's body from the arguments.
type body struct {
	kind        string
	contentType string
	// args names what is sent; nil means every argument that is not placed elsewhere in the request.
	args   []string
	placed map[string]bool
	join   joins
	// files are the arguments that are files of a multipart body.
	files map[string]registry.File
}

func newBody(c *check, field string, b *registry.Body, placed map[string]bool, join joins) *body {
	if b == nil {
		return nil
	}
	out := &body{kind: b.Kind, args: b.Args, placed: placed, join: join, files: b.Files}
	for i, name := range b.Args {
		at := field + ".args." + strconv.Itoa(i)
		if _, ok := c.argument(at, name); ok && slices.Index(b.Args, name) != i {
			c.errorf(problem.BadPlaceholder, at, "argument %q is named twice", name)
		}
	}
	switch b.Kind {
	case "json":
		out.contentType = "application/json"
	case "form":
		out.contentType = "application/x-www-form-urlencoded"
		for _, f := range c.tool.Args.Fields {
			if out.sends(f.Name) && slices.Contains(f.Types, "object") {
				c.errorf(problem.BadPlaceholder, field, "argument %q can be an object, which a form can't hold; use kind: \"json\"", f.Name)
			}
		}
	case "multipart":
	case "raw":
		out.contentType = "text/plain; charset=utf-8"
		c.rawBody(field, b)
	default:
		c.oneOf(field+".kind", b.Kind, "json", "form", "multipart", "raw")
	}
	c.files(field, b, out)
	if b.ContentType != "" {
		if b.Kind != "raw" {
			c.errorf(problem.BadBinding, field+".contentType", "contentType is for kind \"raw\"; %q has its own", b.Kind)
		} else if _, _, err := mime.ParseMediaType(b.ContentType); err != nil || !httpguts.ValidHeaderFieldValue(b.ContentType) {
			c.errorf(problem.BadBinding, field+".contentType", "%q is not a media type such as text/csv", b.ContentType)
		}
		out.contentType = b.ContentType
	}
	return out
}

func (c *check) rawBody(field string, b *registry.Body) {
	if len(b.Args) != 1 {
		c.errorf(problem.BadBinding, field+".args", "a raw body is exactly one argument, and %d are named", len(b.Args))
		return
	}
	f, ok := c.tool.Args.Field(b.Args[0])
	switch {
	case !ok:
	case !slices.Equal(f.Types, []string{"string"}):
		c.errorf(problem.BadPlaceholder, field+".args.0", "argument %q is not always a string, and a raw body is one", f.Name)
	case !f.Always():
		c.errorf(problem.BadPlaceholder, field+".args.0", "argument %q is optional and has no default, so the body could miss it", f.Name)
	}
}

// sends reports whether the argument is part of the body.
func (b *body) sends(name string) bool {
	if b.args == nil {
		return !b.placed[name]
	}
	return slices.Contains(b.args, name)
}

func (b *body) used(c *check, into map[string]bool) {
	for _, f := range c.tool.Args.Fields {
		if b.sends(f.Name) {
			into[f.Name] = true
		}
	}
}

// encode returns the body and its content type; shown says that it is only for a plan.
func (b *body) encode(args contract.Args, shown bool) (content, contentType string, err error) {
	sent := map[string]any{}
	for name, v := range args.Object() {
		if b.sends(name) {
			sent[name] = v
		}
	}
	switch b.kind {
	case "raw":
		content, err = scalar(args, b.args[0])
	case "form":
		content, err = b.form(args, sent)
	case "multipart":
		return b.multipart(args, sent, shown)
	default:
		var out []byte
		if out, err = compactJSON(sent); err != nil {
			err = nothingRan(registry.Internal, "the request's body could not be made", err)
		}
		content = string(out)
	}
	return content, b.contentType, err
}

// form writes a list as a repeated field, or joined by its separator, and omits null.
func (b *body) form(args contract.Args, sent map[string]any) (string, error) {
	form := url.Values{}
	var refused violations
	for _, name := range sortedKeys(sent) {
		for _, s := range b.texts(&refused, args, name, sent[name]) {
			form.Add(name, s)
		}
	}
	return form.Encode(), refused.err()
}

// texts are the values of a form's field.
func (b *body) texts(refused *violations, args contract.Args, name string, v any) (out []string) {
	if b.join[name] != "" {
		if text, ok := b.join.text(refused, args, name); ok {
			out = append(out, text)
		}
		return out
	}
	values, ok := v.([]any)
	if !ok {
		values = []any{v}
	}
	for _, v := range values {
		if v == nil {
			continue
		}
		s, ok := placeholder.Text(v)
		if !ok {
			refused.add(name, "a value with others inside", "a single value or a list of them, because it becomes a form's field")
			break
		}
		out = append(out, s)
	}
	return out
}

// bodyless reports whether requests of the method have no body.
func bodyless(method string) bool { return method == "GET" || method == "HEAD" }

// reservedHeaders are set by the transport only.
var reservedHeaders = []string{
	"Host", "Content-Length", "Connection", "Transfer-Encoding", "Keep-Alive", "Upgrade", "Te", "Trailer", "Accept-Encoding", "Expect",
}

func reservedHeader(name string) bool {
	return slices.Contains(reservedHeaders, name) || strings.HasPrefix(name, "Proxy-")
}

// fixedHeaders are those whose value no call may choose, beside the transport's: they say who is spoken for, which
// method or address is meant, or what the body is.
var fixedHeaders = []string{
	"Authorization", "Cookie", "Content-Type", "Content-Encoding", "Content-Location", "Forwarded", "Idempotency-Key", "Mcp-Session-Id", "Origin",
	"Referer", "Via", "X-Api-Key", "X-Http-Method", "X-Http-Method-Override", "X-Method-Override", "X-Original-Url", "X-Rewrite-Url", "X-Real-Ip",
}

func fixedHeader(name string) bool {
	return slices.Contains(fixedHeaders, name) || strings.HasPrefix(name, "X-Forwarded-") || strings.HasPrefix(name, "Sec-")
}
