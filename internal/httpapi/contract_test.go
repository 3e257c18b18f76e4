package httpapi_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// description is what a daemon says of itself at /openapi.json, closed: a member that it doesn't name is an error.
type description struct {
	schemas *jsonschema.Compiler
	paths   map[string]map[string]described
	mu      sync.Mutex
	// seen are the forms of answers that were produced: METHOD PATH STATUS MEDIA.
	seen map[string]bool
}

type described struct {
	ID         string `json:"operationId"`
	Parameters []struct {
		Name, In string
		Required bool
		Schema   any
	}
	RequestBody *struct {
		Required bool
		Content  map[string]any
	}
	Responses map[string]struct {
		Headers, Content map[string]any
	}
	Security *[]map[string]any
}

func readDescription(t *testing.T, text string) *description {
	t.Helper()
	raw, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	closeObjects(raw)
	d := &description{schemas: jsonschema.NewCompiler(), seen: map[string]bool{}}
	d.schemas.AssertFormat()
	if err := d.schemas.AddResource("openapi.json", raw); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]described
	}
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	d.paths = doc.Paths
	return d
}

// closeObjects allows no members but the described ones.
func closeObjects(v any) {
	switch v := v.(type) {
	case map[string]any:
		if _, ok := v["properties"].(map[string]any); ok && v["type"] == "object" && v["additionalProperties"] == nil {
			v["additionalProperties"] = false
		}
		for _, one := range v {
			closeObjects(one)
		}
	case []any:
		for _, one := range v {
			closeObjects(one)
		}
	}
}

// operation returns the path of the description that a request has, and its operation; the path is empty if there is none.
func (d *description) operation(method, at string) (string, described, bool) {
	segments := strings.Split(strings.TrimSuffix(at, "/"), "/")
	best := ""
	for path := range d.paths {
		wanted := strings.Split(strings.TrimSuffix(path, "/"), "/")
		if slices.EqualFunc(wanted, segments, func(want, s string) bool {
			return want == s || strings.HasPrefix(want, "{")
		}) && (best == "" || strings.Count(path, "{") < strings.Count(best, "{")) {
			best = path
		}
	}
	if method == http.MethodHead {
		method = http.MethodGet
	}
	o, ok := d.paths[best][strings.ToLower(method)]
	return best, o, ok
}

func pointer(segments ...string) string {
	for i, s := range segments {
		segments[i] = url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(s))
	}
	return "openapi.json#/" + strings.Join(segments, "/")
}

// valid checks a JSON text against the schema at a pointer.
func (d *description) valid(at, text string) error {
	d.mu.Lock()
	schema, err := d.schemas.Compile(at)
	d.mu.Unlock()
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return err
	}
	return schema.Validate(v)
}

// check holds an answer to the description: path, method, status, media type, headers and body. A request that was
// answered 2xx must be a good one.
func (d *description) check(r *http.Request, sent string, got *http.Response, body string) error {
	path, o, ok := d.operation(r.Method, r.URL.Path)
	switch {
	case path == "" && got.StatusCode == http.StatusNotFound:
		return d.valid(pointer("components", "schemas", "Error"), body)
	case path == "":
		return fmt.Errorf("the path is not described")
	case !ok && got.StatusCode == http.StatusForbidden && r.Header.Get("Origin") != "":
		return nil
	case !ok && got.StatusCode != http.StatusMethodNotAllowed:
		return fmt.Errorf("the method is not described; want 405, or a description")
	case !ok:
		var want []string
		for method, o := range d.paths[path] {
			want = append(want, strings.ToUpper(method))
			if method == "get" && !strings.HasPrefix(o.ID, "mcpStream") {
				want = append(want, http.MethodHead)
			}
		}
		allow := strings.Split(got.Header.Get("Allow"), ", ")
		if slices.Sort(want); !slices.Equal(want, slices.Sorted(slices.Values(allow))) {
			return fmt.Errorf("allow is %v, want %v", allow, want)
		}
		if r.Method == http.MethodHead {
			return nil
		}
		return d.valid(pointer("components", "schemas", "Error"), body)
	}
	status := fmt.Sprint(got.StatusCode)
	answer, ok := o.Responses[status]
	if !ok {
		return fmt.Errorf("status %s is not described; there are %v", status, slices.Sorted(maps.Keys(o.Responses)))
	}
	described := strings.ToLower(r.Method)
	if r.Method == http.MethodHead {
		described = "get"
	}
	for name := range answer.Headers {
		if name == "Catalogd-Calls" && got.StatusCode == http.StatusTooManyRequests {
			continue // not where the token is not good
		}
		if name == "Retry-After" && got.StatusCode == http.StatusOK && got.Header.Get(name) == "" {
			continue // only over a rate limit
		}
		if got.Header.Get(name) == "" {
			return fmt.Errorf("the header %s is described, and absent", name)
		}
		value := got.Header.Get(name)
		if name != "Retry-After" {
			value = strconv.Quote(value)
		}
		if err := d.valid(pointer("paths", path, described, "responses", status, "headers", name, "schema"), value); err != nil {
			return fmt.Errorf("the header %s: %w", name, err)
		}
	}
	for _, name := range []string{"Allow", "Catalogd-Calls", "Retry-After", "WWW-Authenticate"} {
		if _, ok := answer.Headers[name]; !ok && got.Header.Get(name) != "" {
			return fmt.Errorf("the header %s is not described", name)
		}
	}
	if got.StatusCode < 300 {
		if err := d.good(path, o, r, sent); err != nil {
			return fmt.Errorf("the request was accepted, and is not as described: %w", err)
		}
	}
	return d.checkBody(r, path, status, answer.Content, got, body)
}

func (d *description) checkBody(r *http.Request, path, status string, content map[string]any, got *http.Response, body string) error {
	media := got.Header.Get("Content-Type")
	for described := range content {
		if base, _, err := mime.ParseMediaType(media); described == media || err == nil && described == base {
			media = described
		}
	}
	if _, ok := content[media]; !ok && (len(content) > 0 || body != "") {
		return fmt.Errorf("the media type %q is not described; there are %v", media, slices.Sorted(maps.Keys(content)))
	}
	method := r.Method
	if method == http.MethodHead {
		if body != "" {
			return fmt.Errorf("HEAD is answered with a body")
		}
		return nil
	}
	d.mu.Lock()
	d.seen[strings.Join([]string{method, path, status, media}, " ")] = true
	d.mu.Unlock()
	if media != "application/json" {
		return nil
	}
	return d.valid(pointer("paths", path, strings.ToLower(method), "responses", status, "content", media, "schema"), body)
}

// good checks the query and the body of a request.
func (d *description) good(path string, o described, r *http.Request, sent string) error {
	for name, values := range r.URL.Query() {
		i := slices.IndexFunc(o.Parameters, func(p struct {
			Name, In string
			Required bool
			Schema   any
		}) bool {
			return p.In == "query" && p.Name == name
		})
		if i < 0 {
			return fmt.Errorf("the parameter %s is not described", name)
		}
		schema := pointer("paths", path, strings.ToLower(r.Method), "parameters", fmt.Sprint(i), "schema")
		if kind, _ := o.Parameters[i].Schema.(map[string]any)["type"].(string); kind == "array" {
			schema += "/items"
		} else if kind == "integer" {
			if err := d.valid(schema, values[0]); err != nil {
				return err
			}
			continue
		}
		for _, v := range values {
			quoted, err := json.Marshal(v)
			if err != nil {
				return err
			}
			if err := d.valid(schema, string(quoted)); err != nil {
				return err
			}
		}
	}
	switch {
	case o.RequestBody == nil || sent == "" && !o.RequestBody.Required:
		return nil
	case sent == "":
		return fmt.Errorf("the body is required")
	}
	return d.valid(pointer("paths", path, strings.ToLower(r.Method), "requestBody", "content", "application/json", "schema"), sent)
}

// unseen are the described answers that no request got.
func (d *description) unseen() (missing []string) {
	for path, operations := range d.paths {
		for method, o := range operations {
			for status, answer := range o.Responses {
				forms := slices.Collect(maps.Keys(answer.Content))
				if len(forms) == 0 {
					forms = []string{""}
				}
				for _, media := range forms {
					if form := strings.Join([]string{strings.ToUpper(method), path, status, media}, " "); !d.seen[form] {
						missing = append(missing, form)
					}
				}
			}
		}
	}
	slices.Sort(missing)
	return missing
}

// client sends requests to one daemon and checks each answer.
type client struct {
	t   *testing.T
	d   *description
	url string
}

// do sends a request with headers in pairs, of which a repeated name is sent twice, and returns the answer's status, header
// and body. A stream is not read.
func (c client) do(method, path, body string, header ...string) (int, http.Header, string) {
	c.t.Helper()
	r, err := http.NewRequest(method, c.url+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		if name := http.CanonicalHeaderKey(header[i]); name == "Content-Type" || name == "Accept" {
			r.Header.Set(name, header[i+1])
		} else {
			r.Header.Add(name, header[i+1])
		}
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	return c.read(r, body, got)
}

func (c client) read(r *http.Request, sent string, got *http.Response) (int, http.Header, string) {
	c.t.Helper()
	defer got.Body.Close()
	var body []byte
	if got.Header.Get("Content-Type") != "text/event-stream" {
		var err error
		if body, err = io.ReadAll(got.Body); err != nil {
			c.t.Fatal(err)
		}
	}
	if err := c.d.check(r, sent, got, string(body)); err != nil {
		c.t.Errorf("%s %s: %d %.300s\n%v", r.Method, r.URL.Path, got.StatusCode, body, err)
	}
	return got.StatusCode, got.Header, string(body)
}

// want is do for a request that must be answered with a status.
func (c client) want(status int, method, path, body string, header ...string) string {
	c.t.Helper()
	got, _, text := c.do(method, path, body, header...)
	if got != status {
		c.t.Errorf("%s %s %.80s: got %d %.300s, want %d", method, path, body, got, text, status)
	}
	return text
}

// raw sends a request that announces a body of length bytes and sends none of it.
func (c client) raw(status int, method, path string, length int, header ...string) {
	c.t.Helper()
	r, err := http.NewRequest(method, c.url+path, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	conn, err := net.Dial("tcp", r.URL.Host)
	if err != nil {
		c.t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n", method, path, r.URL.Host, length)
	for i := 0; i < len(header); i += 2 {
		fmt.Fprintf(conn, "%s: %s\r\n", header[i], header[i+1])
	}
	fmt.Fprint(conn, "\r\n")
	got, err := http.ReadResponse(bufio.NewReader(conn), r)
	if err != nil {
		c.t.Fatal(err)
	}
	if s, _, body := c.read(r, "", got); s != status {
		c.t.Errorf("%s %s: got %d %s, want %d", method, path, s, body, status)
	}
}
