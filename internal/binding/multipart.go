package binding

import (
	"encoding/base64"
	"fmt"
	"mime"
	"mime/multipart"
	"net/textproto"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// shownBoundary stands for the random boundary of a multipart body in a plan.
const shownBoundary = "boundary"

// files checks the arguments that are files of a multipart body.
func (c *check) files(field string, b *registry.Body, out *body) {
	if len(b.Files) > 0 && b.Kind != "multipart" {
		c.errorf(problem.BadBinding, field+".files", "files are for kind \"multipart\", and this is %q", b.Kind)
		return
	}
	for _, name := range sortedKeys(b.Files) {
		at := field + ".files." + name
		f, ok := c.argument(at, name)
		file := b.Files[name]
		switch {
		case !ok:
		case !out.sends(name):
			c.errorf(problem.BadPlaceholder, at, "argument %q is not in the body; name it in args, or take it out of the URL, query and headers", name)
		case out.join[name] != "":
			c.errorf(problem.BadPlaceholder, at, "argument %q is a file, and join has a separator for it; take one of the two away", name)
		case notOneOf(f, "string", "array", "null"):
			c.errorf(problem.BadPlaceholder, at, "argument %q is not always a text or a list of them, and a file is base64", name)
		case file.Name == "" || len(file.Name) > maxWord || plain(file.Name) != file.Name || strings.ContainsAny(file.Name, "\"\\/\r\n\t"):
			c.errorf(problem.BadBinding, at+".name", "%q is not a file's name: 1 to %d bytes without slashes, quotes and control characters", file.Name, maxWord)
		case !mediaType(file.ContentType):
			c.errorf(problem.BadBinding, at+".contentType", "%q is not a media type such as image/png", file.ContentType)
		}
	}
	for _, f := range c.tool.Args.Fields {
		if _, file := b.Files[f.Name]; b.Kind == "multipart" && !file && out.sends(f.Name) && mayBe(f, "object") {
			c.errorf(problem.BadPlaceholder, field, "argument %q can be an object, which a form can't hold; use kind: \"json\"", f.Name)
		}
	}
}

// notOneOf reports whether the argument can be of another type.
func notOneOf(f contract.Field, types ...string) bool {
	return len(f.Types) == 0 || slices.ContainsFunc(f.Types, func(t string) bool { return !slices.Contains(types, t) })
}

func mediaType(s string) bool {
	kind, _, err := mime.ParseMediaType(s)
	return err == nil && strings.Contains(kind, "/") && httpguts.ValidHeaderFieldValue(s)
}

// multipart writes each argument as a part, a list as several, and omits null. In a plan, shown, the boundary
// is fixed and a file is its size.
func (b *body) multipart(args contract.Args, sent map[string]any, shown bool) (content, contentType string, err error) {
	var out strings.Builder
	w := multipart.NewWriter(&out) // with a random boundary
	if shown {
		if err := w.SetBoundary(shownBoundary); err != nil {
			return "", "", err
		}
	}
	part := func(name string, file *registry.File, text string) error {
		header := textproto.MIMEHeader{}
		disposition := `form-data; name="` + partName.Replace(name) + `"`
		if file != nil {
			disposition += `; filename="` + partName.Replace(file.Name) + `"`
			header.Set("Content-Type", file.ContentType)
		}
		header.Set("Content-Disposition", disposition)
		p, err := w.CreatePart(header)
		if err == nil {
			_, err = p.Write([]byte(text))
		}
		return err
	}
	var refused violations
	for _, name := range sortedKeys(sent) {
		declared, isFile := b.files[name]
		for _, text := range b.texts(&refused, args, name, sent[name]) {
			file := &declared
			if !isFile {
				file = nil
			} else if text, err = decodedFile(text, shown); err != nil {
				refused.add(name, "a text that is not base64", "base64 (RFC 4648, section 4, with padding and on one line), because it becomes a file")
				break
			}
			if err := part(name, file, text); err != nil {
				return "", "", nothingRan(registry.Internal, "the request's body could not be made", err)
			}
		}
	}
	if err := refused.err(); err != nil {
		return "", "", err
	}
	if err := w.Close(); err != nil {
		return "", "", nothingRan(registry.Internal, "the request's body could not be made", err)
	}
	return out.String(), w.FormDataContentType(), nil
}

// partName escapes a name as browsers do (RFC 7578, 4.2, and the HTML standard).
var partName = strings.NewReplacer("\"", "%22", "\r", "%0D", "\n", "%0A")

// decodedFile returns the bytes of a file, or in a plan their number.
func decodedFile(text string, shown bool) (string, error) {
	if strings.ContainsAny(text, "\r\n") {
		return "", fmt.Errorf("more than one line")
	}
	data, err := base64.StdEncoding.Strict().DecodeString(text)
	if shown {
		return fmt.Sprintf("(%d bytes)", len(data)), err
	}
	return string(data), err
}
