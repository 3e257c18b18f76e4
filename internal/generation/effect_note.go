package generation

import (
	"fmt"
	"strings"

	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// EffectNote is the author's reason why a tool with effect "read" that sends a request other than GET and HEAD,
// runs a command or calls a server's tool, changes nothing. Nothing checks it: it is for people who review the catalog.
type EffectNote struct {
	// Tool is the tool's name in the catalog.
	Tool string `json:"tool"`
	// Does is what the tool does: "sends a POST", "runs git" or `calls "add" of server "math"`.
	Does string `json:"does"`
	// Note is the author's reason.
	Note string `json:"note"`
	// Pos is where the reason is written.
	Pos problem.Position `json:"pos"`
}

// effectNote returns the note of a tool; false if it has none, or one that is reported as unused.
func effectNote(t registry.Tool) (EffectNote, bool) {
	does := t.Suspect()
	return EffectNote{t.Name, does, t.EffectNote, t.At("effectNote")}, does != "" && t.EffectNote != ""
}

// String returns the note in one line.
func (n EffectNote) String() string {
	return fmt.Sprintf("%s, and only reads: %s", n.Does, strings.Join(strings.Fields(n.Note), " "))
}
