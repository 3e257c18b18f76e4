package binding

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/internal/httpstatus"
	"github.com/catalogd/catalogd/internal/jq"
	"github.com/catalogd/catalogd/internal/secret"
	"github.com/catalogd/catalogd/internal/strictjson"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// answers says what the answers of a service are taken for.
type answers struct {
	limit  int64
	output string // text, json or content
	raw    bool
	// success are the statuses of a success; nil means 200 to 299.
	success []int
	// choose is a jq program from a JSON answer to the output, complain one from {status, body} of an error to
	// the text that the model gets; empty without one.
	choose, complain string
}

func newAnswers(c *check, field string, h *registry.HTTP) answers {
	a := answers{
		limit:  c.maxOutput(field+".maxOutput", h.MaxOutput),
		output: h.Output, success: h.Success, choose: h.Select, complain: h.Error,
		raw: c.raw(field+".raw", h.Raw, h.Output == "json"),
	}
	c.output(field+".output", h.Output, "text", "json", "content")
	for i, status := range h.Success {
		at := fmt.Sprintf("%s.success.%d", field, i)
		switch {
		case status < 200 || status > 499:
			c.errorf(problem.BadBinding, at, "%d is not a status from 200 to 499", status)
		case slices.Index(h.Success, status) != i:
			c.errorf(problem.BadBinding, at, "%d is named twice", status)
		}
	}
	c.program(field+".select", h.Select)
	c.program(field+".error", h.Error)
	if h.Select != "" && h.Output == "text" {
		c.errorf(problem.BadBinding, field+".select", `select is for JSON; declare output: "json" or "content"`)
	}
	return a
}

// program reports a jq program that doesn't compile.
func (c *check) program(field, source string) {
	if source == "" {
		return
	}
	if err := jq.Check(source); err != nil {
		c.errorf(problem.BadJQ, field, "%v", err)
	}
}

// succeeded reports whether the status is one of a success.
func (a answers) succeeded(status int) bool {
	if a.success == nil {
		return status >= 200 && status < 300
	}
	return slices.Contains(a.success, status)
}

// outcome is what the status says of a side effect. A declared success is one; a success that the declaration
// doesn't name is unclear.
func (a answers) outcome(status int) registry.Outcome {
	of := httpstatus.Of(status)
	switch {
	case a.success == nil:
	case a.succeeded(status):
		return registry.OutcomeSucceeded
	case of == registry.OutcomeSucceeded:
		return registry.OutcomeUnclear
	}
	return of
}

// answer converts a response to a result. An error, which is each status that is no success, is a result that
// a model can act on; so is a redirect without a target, or one not followed because the request has a side
// effect.
func (h *httpInvoker) answer(ctx context.Context, res *http.Response, write bool) (*registry.Result, error) {
	outcome := h.outcome(res.StatusCode)
	failed := !h.succeeded(res.StatusCode)
	content, large, err := h.read(res, h.limit, failed, write)
	// The status alone decides that a request with a side effect was rejected, even if its body can't be
	// read.
	if err != nil && (!write || outcome != registry.OutcomeFailed) {
		return nil, h.failure(ctx, err)
	}
	switch {
	case failed:
		r := h.refusal(ctx, res, content, write)
		r.Unclear = outcome == registry.OutcomeUnclear
		return r, nil
	case large && write:
		return nil, hidden(registry.OutputTooLarge, outcome, tooLarge("the service's answer", h.limit))
	case large:
		return nil, askLess("the service's answer", h.limit)
	}
	done := write && outcome == registry.OutcomeSucceeded
	kind := h.output
	if h.method == http.MethodHead || strings.TrimSpace(content) == "" {
		kind = "text" // there is no body
	} else if h.choose != "" {
		if content, err = h.chosen(ctx, content, done); err != nil {
			return nil, err
		}
	}
	r, err := outputResult(content, "the service's answer", kind, h.raw, done)
	if err != nil {
		return nil, err
	}
	r.Unclear = outcome == registry.OutcomeUnclear
	return r, nil
}

// read returns the body, at most limit bytes of it, with the secrets masked. large says that there is more.
func (h *httpInvoker) read(res *http.Response, limit int64, failed, write bool) (content string, large bool, err error) {
	// Only the beginning of an error is shown, so its size does not matter.
	if !failed && !write && res.ContentLength > limit {
		return "", true, nil
	}
	b, err := io.ReadAll(io.LimitReader(res.Body, limit+1))
	large = int64(len(b)) > limit
	if large && write && err == nil {
		// A service may stop working when its connection is closed, and only the end of the body shows that
		// it has finished.
		_, err = io.Copy(io.Discard, res.Body)
	}
	return secret.MaskerFor(h.values, h.root).Replace(string(b)), large, err
}

// refusal is the result of an answer that is an error.
func (h *httpInvoker) refusal(ctx context.Context, res *http.Response, content string, write bool) *registry.Result {
	mask := secret.MaskerFor(h.values, h.root)
	// Not res.Status, whose words are the service's and may repeat a secret.
	status := strings.TrimSpace(fmt.Sprintf("the service answered HTTP %d %s", res.StatusCode, http.StatusText(res.StatusCode)))
	for _, name := range []string{"Retry-After", "Location"} {
		if value := res.Header.Get(name); value != "" && (name != "Location" || write) {
			status += "\n" + name + ": " + head(plain(mask.Replace(value)))
		}
	}
	if says, ok := h.complaint(ctx, res.StatusCode, content); ok {
		content = mask.Replace(says)
	}
	return textResult(true, status, head(plain(content)))
}

// complaint runs the declared program over an error; false where it has nothing to say.
func (h *httpInvoker) complaint(ctx context.Context, status int, content string) (string, bool) {
	if h.complain == "" {
		return "", false
	}
	body, err := strictjson.Unambiguous([]byte(strings.TrimSpace(strings.ToValidUTF8(content, "\uFFFD"))))
	if err != nil {
		if body, err = compactJSON(content); err != nil {
			return "", false
		}
	}
	in, err := json.Marshal(struct {
		Status int             `json:"status"`
		Body   json.RawMessage `json:"body"`
	}{status, body})
	if err != nil {
		return "", false
	}
	out, err := h.jq.Run(ctx, h.complain, in, defaultMaxOutput)
	if err != nil || string(out) == "null" {
		return "", false // the answer itself says more than that the program failed on it
	}
	var text string
	if json.Unmarshal(out, &text) != nil {
		text = string(out)
	}
	return text, strings.TrimSpace(text) != ""
}

// chosen runs the declared program over an answer, and returns its output as JSON.
func (h *httpInvoker) chosen(ctx context.Context, content string, done bool) (string, error) {
	const what = "the service's answer"
	fail := func(code registry.ErrorCode, msg string, err error) error {
		if done {
			e := hidden(code, registry.OutcomeSucceeded, msg)
			e.Err = err
			return e
		}
		return &registry.Error{Code: code, Msg: msg, Err: err}
	}
	in, err := strictjson.Unambiguous([]byte(strings.TrimSpace(strings.ToValidUTF8(content, "\uFFFD"))))
	if err != nil {
		return "", fail(registry.ResultInvalid, what+" was to be one JSON value, and is not, so nothing of it can be selected", err)
	}
	out, err := h.jq.Run(ctx, h.choose, in, int(min(h.limit, maxSelected)))
	switch {
	case err == nil:
		return string(out), nil
	case ctx.Err() != nil:
		return "", ctx.Err()
	case errors.As(err, new(jq.TooLargeError)):
		return "", fail(registry.OutputTooLarge, tooLarge("what select makes of "+what, min(h.limit, maxSelected)), nil)
	case errors.As(err, new(jq.UnavailableError)):
		return "", fail(registry.Unavailable, "the tool's select program could not be run", err)
	}
	// The program's own words may quote the answer, on which the policy has not decided.
	return "", fail(registry.ResultInvalid, "the tool's select program failed on "+what+"; the operator's log says why", err)
}

// maxSelected caps the output of a program over an answer, in bytes.
const maxSelected = 4 << 20
