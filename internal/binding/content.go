package binding

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/catalogd/catalogd/internal/strictjson"
	"github.com/catalogd/catalogd/registry"
)

const (
	// maxBlocks caps the content blocks of one output of kind content, which a client shows one by one.
	maxBlocks = 1000
	// maxDepth caps how deep an output of kind content may nest.
	maxDepth = 128
	// maxURI caps the URI of a resource, and maxWord a media type, a name or a title, in bytes.
	maxURI, maxWord = 4096, 256
)

// contentError says where an output of kind content is none, as a JSON pointer, and what is expected there.
// It quotes nothing of the output, on which the policy has not decided.
type contentError struct{ pointer, want string }

func (e *contentError) Error() string {
	if e.pointer == "" {
		return e.want
	}
	return "at " + e.pointer + ": " + e.want
}

// contentResult reads an output of kind content, which is a result of MCP in JSON: content, and optionally
// structuredContent and isError. All of it is checked, and a member or a block that is not known is refused
// (docs/bindings.md has the table). Of the text of blocks, terminal sequences and control characters are
// removed unless raw. The error is a *contentError.
func contentResult(out string, raw bool) (*registry.Result, error) {
	v, err := strictjson.Decode([]byte(strings.TrimSpace(out)), strictjson.Options{MaxDepth: maxDepth})
	var bad *strictjson.Error
	if errors.As(err, &bad) {
		return nil, &contentError{"", fmt.Sprintf("it is not strict JSON: expected %s at byte %d", bad.Problem, bad.Offset)}
	}
	top, ok := v.(*strictjson.Object)
	if !ok {
		return nil, &contentError{"", "expected one object with content, and optionally structuredContent and isError"}
	}
	c := &contentReader{raw: raw}
	c.only(top, "", "content", "structuredContent", "isError")
	r := &registry.Result{IsError: c.flag(top, "", "isError")}
	blocks, ok := top.Get("content").([]any)
	switch {
	case !ok:
		c.fail("/content", "expected a list of blocks")
	case len(blocks) > maxBlocks:
		c.fail("/content", fmt.Sprintf("expected at most %d blocks", maxBlocks))
	}
	if c.err != nil {
		return nil, c.err
	}
	r.Content = make([]json.RawMessage, 0, len(blocks))
	for i, v := range blocks {
		at := fmt.Sprintf("/content/%d", i)
		block, ok := v.(*strictjson.Object)
		if !ok {
			c.fail(at, "expected an object")
			return nil, c.err
		}
		c.block(block, at)
		if c.err != nil {
			return nil, c.err
		}
		r.Content = append(r.Content, strictjson.Append(nil, block))
	}
	if structured, ok := top.Find("structuredContent"); ok {
		if _, object := structured.(*strictjson.Object); !object {
			return nil, &contentError{"/structuredContent", "expected an object"}
		}
		r.Structured = strictjson.Append(nil, structured)
	}
	return r, nil
}

// contentReader checks blocks and cleans their texts in place. The first error stays.
type contentReader struct {
	raw bool
	err error
}

func (c *contentReader) fail(pointer, want string) {
	if c.err == nil {
		c.err = &contentError{pointer, want}
	}
}

// only refuses members of other names than these.
func (c *contentReader) only(o *strictjson.Object, at string, names ...string) {
	for _, m := range o.Members {
		if !slices.Contains(names, m.Key) {
			c.fail(at, "expected no members but "+strings.Join(names, ", "))
		}
	}
}

// block checks one content block.
func (c *contentReader) block(b *strictjson.Object, at string) {
	c.annotations(b, at)
	switch kind, _ := b.Get("type").(string); kind {
	case "text":
		c.only(b, at, "type", "text", "annotations")
		c.text(b, at, "text", true)
	case "image", "audio":
		c.only(b, at, "type", "data", "mimeType", "annotations")
		c.base64(b, at, "data")
		if b.Get("data") == "" {
			c.fail(at+"/data", "expected data")
		}
		c.media(b, at, kind+"/", true)
	case "resource":
		c.only(b, at, "type", "resource", "annotations")
		res, ok := b.Get("resource").(*strictjson.Object)
		if !ok {
			c.fail(at+"/resource", "expected an object")
			return
		}
		c.resource(res, at+"/resource")
	case "resource_link":
		c.only(b, at, "type", "uri", "name", "title", "description", "mimeType", "size", "annotations")
		c.uri(b, at)
		c.word(b, at, "name", true)
		c.word(b, at, "title", false)
		c.text(b, at, "description", false)
		c.media(b, at, "", false)
		if size, ok := b.Find("size"); ok {
			n, _ := size.(json.Number)
			if bytes, err := n.Int64(); err != nil || bytes < 0 {
				c.fail(at+"/size", "expected a number of bytes")
			}
		}
	default:
		c.fail(at+"/type", "expected text, image, audio, resource or resource_link")
	}
}

// resource checks an embedded resource: its text, or its bytes as a blob.
func (c *contentReader) resource(o *strictjson.Object, at string) {
	c.only(o, at, "uri", "mimeType", "text", "blob")
	c.uri(o, at)
	c.media(o, at, "", false)
	if o.Has("text") == o.Has("blob") {
		c.fail(at, "expected either text or blob")
	}
	if o.Has("blob") {
		c.base64(o, at, "blob")
		return
	}
	c.text(o, at, "text", true)
}

// annotations checks those of a block: for whom it is, how important, and when it was modified last.
func (c *contentReader) annotations(b *strictjson.Object, at string) {
	v, ok := b.Find("annotations")
	if !ok {
		return
	}
	at += "/annotations"
	o, ok := v.(*strictjson.Object)
	if !ok {
		c.fail(at, "expected an object")
		return
	}
	c.only(o, at, "audience", "priority", "lastModified")
	if v, ok := o.Find("audience"); ok {
		roles, ok := v.([]any)
		if !ok || slices.ContainsFunc(roles, func(role any) bool { return role != "user" && role != "assistant" }) {
			c.fail(at+"/audience", "expected a list of user and assistant")
		}
	}
	if v, ok := o.Find("priority"); ok {
		n, _ := v.(json.Number)
		if f, err := n.Float64(); err != nil || f < 0 || f > 1 {
			c.fail(at+"/priority", "expected a number from 0 to 1")
		}
	}
	if v, ok := o.Find("lastModified"); ok {
		s, _ := v.(string)
		if _, err := time.Parse(time.RFC3339, s); err != nil {
			c.fail(at+"/lastModified", "expected a time as in RFC 3339")
		}
	}
}

func (c *contentReader) flag(o *strictjson.Object, at, name string) bool {
	v, ok := o.Find(name)
	set, is := v.(bool)
	if ok && !is {
		c.fail(at+"/"+name, "expected true or false")
	}
	return set
}

// text checks a text and takes out of it what could drive a terminal.
func (c *contentReader) text(o *strictjson.Object, at, name string, required bool) {
	v, ok := o.Find(name)
	s, is := v.(string)
	if !is && (ok || required) {
		c.fail(at+"/"+name, "expected a text")
	}
	if is {
		o.Set(name, shown(s, c.raw))
	}
}

// word checks a short text, which must not be empty.
func (c *contentReader) word(o *strictjson.Object, at, name string, required bool) {
	v, ok := o.Find(name)
	if s, _ := v.(string); (ok || required) && (strings.TrimSpace(s) == "" || len(s) > maxWord || plain(s) != s) {
		c.fail(at+"/"+name, fmt.Sprintf("expected a text of 1 to %d bytes without control characters", maxWord))
	}
}

// base64 checks base64 as RFC 4648, section 4 spells it: padded, on one line, one spelling for the same bytes.
func (c *contentReader) base64(o *strictjson.Object, at, name string) {
	s, ok := o.Get(name).(string)
	_, err := base64.StdEncoding.Strict().DecodeString(s)
	if !ok || err != nil || strings.ContainsAny(s, "\r\n") {
		c.fail(at+"/"+name, "expected base64 (RFC 4648, section 4, with padding and on one line), in which no secret of the tool stands")
	}
}

// media checks a media type, which begins with a family such as image/.
func (c *contentReader) media(o *strictjson.Object, at, family string, required bool) {
	v, ok := o.Find("mimeType")
	if !ok && !required {
		return
	}
	s, _ := v.(string)
	kind, _, err := mime.ParseMediaType(s)
	if err != nil || !strings.Contains(kind, "/") || !strings.HasPrefix(kind, family) || len(s) > maxWord {
		c.fail(at+"/mimeType", "expected a media type such as "+cmp.Or(family, "text/")+"...")
	}
}

// uri checks an absolute URI.
func (c *contentReader) uri(o *strictjson.Object, at string) {
	s, _ := o.Get("uri").(string)
	if u, err := url.Parse(s); err != nil || !u.IsAbs() || len(s) > maxURI || plain(s) != s {
		c.fail(at+"/uri", fmt.Sprintf("expected a URI with a scheme, of at most %d bytes", maxURI))
	}
}
