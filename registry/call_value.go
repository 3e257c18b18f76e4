package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/gotype"
)

// Failure is the error of a call that has a result with IsError: the tool itself failed.
type Failure struct {
	// Kind is the kind of a Go function's error, such as not_found; error for every other.
	Kind string
	// Text is what the model reads.
	Text string
}

func (f *Failure) Error() string { return f.Text }

// Failed returns why the call has no successful result: its Err, a *Failure if the tool itself failed, or an error
// if the call has not ended or was answered with a handle or a question. It is nil for a call that has succeeded.
func (c Call) Failed() error {
	switch {
	case c.Err != nil:
		return c.Err
	case c.Result == nil:
		return fmt.Errorf("the call of %q has not ended", Shown(c.Tool))
	case c.Result.IsError:
		f := &Failure{Kind: "error", Text: c.Text()}
		var meta map[string]json.RawMessage
		if json.Unmarshal(c.Result.Meta, &meta) == nil && meta[MetaErrorKind] != nil {
			if err := json.Unmarshal(meta[MetaErrorKind], &f.Kind); err != nil {
				return errors.Join(f, err)
			}
		}
		return f
	case c.Result.Input != nil:
		return fmt.Errorf("the tool %q asks for input before it answers", Shown(c.Tool))
	case c.Result.Handle:
		return fmt.Errorf("the effect of %q has not ended; the intent %s says how it does", Shown(c.Tool), c.Intent)
	}
	return nil
}

// Decode reads the result into the value that v points to: the structured content, or the text if there is none, which
// must then be JSON unless v is a *string. Keys are matched exactly, numbers in an any keep their digits
// (json.Number), and keys without a field are ignored. The error of a call that did not succeed is that of Failed.
func (c Call) Decode(v any) error {
	if err := c.Failed(); err != nil {
		return err
	}
	data := c.Result.Structured
	if data == nil {
		if s, ok := v.(*string); ok {
			*s = c.Text()
			return nil
		}
		data = json.RawMessage(c.Text())
	}
	if err := gotype.DecodeResult(data, v); err != nil {
		return fmt.Errorf("the result of %q can't be read into %T: %w", Shown(c.Tool), v, err)
	}
	return nil
}

// Text returns the text blocks of the result, a line each, or the message of the error.
func (c Call) Text() string {
	if c.Err != nil {
		return c.Err.Msg
	}
	if c.Result == nil {
		return ""
	}
	var parts []string
	for _, raw := range c.Result.Content {
		var block struct{ Type, Text string }
		if json.Unmarshal(raw, &block) == nil && block.Type == "text" {
			parts = append(parts, block.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// callJSON is the JSON of a Call, with the keys of GET /calls/{id}. They are stable.
type callJSON struct {
	ID         string `json:"id"`
	Branch     string `json:"branch"`
	Tool       string `json:"tool"`
	Principal  string `json:"principal"`
	Generation string `json:"generation"`
	Status     Status `json:"status"`

	Started  time.Time     `json:"started"`
	Duration time.Duration `json:"duration_ns,omitempty"`
	// Digest is that of the checked arguments.
	Digest   string     `json:"digest,omitempty"`
	Decision string     `json:"decision,omitempty"`
	Reasons  []string   `json:"reasons,omitempty"`
	Intent   string     `json:"intent,omitempty"`
	Result   *Result    `json:"result,omitempty"`
	Error    *errorJSON `json:"error,omitempty"`
}

type errorJSON struct {
	Code       ErrorCode            `json:"code"`
	Message    string               `json:"message"`
	Decision   string               `json:"decision,omitempty"`
	Violations []contract.Violation `json:"violations,omitempty"`
	Nearest    []string             `json:"nearest,omitempty"`
}

// MarshalJSON writes the record without what only the operator's log may have: of the arguments their digest, and of
// an error the code and the message for the model.
func (c Call) MarshalJSON() ([]byte, error) {
	out := callJSON{
		ID: c.ID, Branch: c.Branch, Tool: Shown(c.Tool), Principal: c.Principal, Generation: c.Generation,
		Status: c.Status, Started: c.Start.UTC(), Duration: c.Duration, Intent: c.Intent,
		Decision: c.Decision, Reasons: c.Reasons, Result: c.Result,
	}
	if c.Arguments.Object() != nil {
		out.Digest = c.Arguments.Digest()
	}
	if e := c.Err; e != nil {
		out.Error = &errorJSON{e.Code, e.Msg, e.Decision, e.Violations, e.Nearest}
	}
	return json.Marshal(out)
}
