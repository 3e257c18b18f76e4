package registry

import (
	"encoding/json"

	"github.com/catalogd/catalogd/contract"
)

// Handle is what the caller of a write tool gets in place of a result that is not there yet: which intent the call has
// become, and what to do. It is no error.
type Handle struct {
	// ID names the intent, State is its state, Tool the tool's name in the catalog.
	ID    string `json:"id"`
	State string `json:"state"`
	Tool  string `json:"tool"`
	// Message tells the model what that means and what to do next.
	Message string `json:"message"`
}

// HandleSchema is the schema of a handle's structured content, which says the same in every draft of JSON Schema. It is the
// handles' part of a write tool's output schema (Entry.Output).
const HandleSchema = `{"type":"object",` +
	`"description":"In place of a result that is not there yet: the intent that the call has become.",` +
	`"properties":{"intent":{"type":"object","properties":{` +
	`"id":{"type":"string","description":"The intent's id."},` +
	`"state":{"type":"string","description":"Where the intent stands."},` +
	`"tool":{"type":"string","description":"The tool that was called."},` +
	`"message":{"type":"string","description":"What to do now."}},` +
	`"required":["id","state","tool","message"],"additionalProperties":false}},` +
	`"required":["intent"],"additionalProperties":false}`

// Result is the handle as a result: its message as text, and structured content that fits HandleSchema.
func (h Handle) Result() *Result {
	structured, err := json.Marshal(struct {
		Intent Handle `json:"intent"`
	}{h})
	if err != nil {
		panic("registry: strings always encode: " + err.Error())
	}
	return &Result{Content: []json.RawMessage{Text(h.Message)}, Structured: structured}
}

// told returns the output schema of the tool in tools/list.
func (t *Tool) told() (json.RawMessage, error) {
	output := t.Output()
	if output == nil || t.Effect != Write {
		return output, nil
	}
	return contract.Either(output, json.RawMessage(HandleSchema), !t.Result.Value)
}
