package upstream

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/registry"
)

// answered is what a client was answered to one call.
type answered struct {
	code  registry.ErrorCode
	text  string
	heard []string
	raw   string
}

// readAnswer reads what answers a call: one message, or a stream of them.
func readAnswer(t *testing.T, raw string) answered {
	t.Helper()
	got, last := answered{raw: raw}, raw
	if !strings.HasPrefix(raw, "{") {
		for line := range strings.Lines(raw) {
			if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: "); ok {
				got.heard, last = append(got.heard, data), data
			}
		}
		got.heard = got.heard[:max(0, len(got.heard)-1)]
	}
	var answer struct {
		Result struct {
			Content []struct{ Text string }
			IsError bool
			Meta    struct {
				Error struct{ Code registry.ErrorCode } `json:"catalogd/error"`
			} `json:"_meta"`
		}
		Error *struct {
			Code    int
			Message string
		}
	}
	if err := json.Unmarshal([]byte(last), &answer); err != nil {
		t.Fatalf("%v in %.500s", err, last)
	}
	if answer.Error != nil {
		got.code, got.text = registry.UnknownTool, answer.Error.Message
		return got
	}
	for _, block := range answer.Result.Content {
		got.text += block.Text
	}
	got.code = answer.Result.Meta.Error.Code
	if got.code != "" && !answer.Result.IsError {
		t.Errorf("isError is %v with the code %q: %.500s", answer.Result.IsError, got.code, last)
	}
	return got
}
