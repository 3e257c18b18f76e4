package registry

import (
	"encoding/json"

	"github.com/catalogd/catalogd/contract"
)

// Handle refers to the intent of a call of a write tool. The caller gets it, as a successful result, if there
// is no result yet.
type Handle struct {
	// ID and State are those of the intent; Tool is the tool's name in the catalog.
	ID    string `json:"id"`
	State string `json:"state"`
	Tool  string `json:"tool"`
	// Message explains the state to the model and says what to do next.
	Message string `json:"message"`
}

// HandleSchema is the JSON Schema of a handle's structured content. It means the same in every draft. The
// output schema of a write tool (Entry.Output) allows it beside the tool's own.
const HandleSchema = `{"type":"object",` +
	`"description":"In place of a result that is not there yet: the intent that the call has become.",` +
	`"properties":{"intent":{"type":"object","properties":{` +
	`"id":{"type":"string","description":"The intent's id."},` +
	`"state":{"type":"string","description":"The intent's state."},` +
	`"tool":{"type":"string","description":"The tool that was called."},` +
	`"message":{"type":"string","description":"What to do now."}},` +
	`"required":["id","state","tool","message"],"additionalProperties":false}},` +
	`"required":["intent"],"additionalProperties":false}`

// Result returns the handle as a result: its message as text, and structured content that matches
// HandleSchema.
func (h Handle) Result() *Result {
	structured, err := json.Marshal(struct {
		Intent Handle `json:"intent"`
	}{h})
	if err != nil {
		panic("registry: strings always encode: " + err.Error())
	}
	return &Result{Content: []json.RawMessage{Text(h.Message)}, Structured: structured}
}

// listedOutput returns the output schema of the tool in tools/list.
func (t *Tool) listedOutput() (json.RawMessage, error) {
	output := t.Output()
	if output == nil || t.Effect != Write {
		return output, nil
	}
	return contract.Either(output, json.RawMessage(HandleSchema), !t.Result.Value)
}
