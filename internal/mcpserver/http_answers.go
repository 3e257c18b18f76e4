package mcpserver

import (
	"encoding/json"
	"net/http"

	"github.com/catalogd/catalogd/problem"
)

// NotAllowed answers 405; allow is the value of the Allow header.
func NotAllowed(w http.ResponseWriter, allow string) {
	w.Header().Set("Allow", allow)
	WriteError(w, http.StatusMethodNotAllowed, "method not allowed; allowed: "+allow)
}

// WriteError answers a status with the JSON object {"error": text}.
func WriteError(w http.ResponseWriter, status int, text string) {
	WriteJSON(w, status, map[string]string{"error": text})
}

// WriteText answers 200 with a line of plain text.
func WriteText(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	// This fails only if the client has disconnected.
	_, _ = w.Write([]byte(text + "\n"))
}

// WriteJSON answers a status with v as JSON, as problem.PrintableJSON prints it. It panics if v can't be
// encoded.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	out, err := json.Marshal(v)
	if err != nil {
		panic("mcpserver: " + err.Error()) // only our own types are encoded; the handler's recover answers
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(problem.PrintableJSON(out), '\n'))
}
