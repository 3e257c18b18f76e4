package serve

import (
	"net/http"

	"github.com/catalogd/catalogd/invoke"
)

// NewTestGeneration makes a generation of nothing but call paths.
func NewTestGeneration(id string, paths map[string]*invoke.Path) *Generation {
	return &Generation{ID: id, paths: paths}
}

// Guard and Scan are the parts that tests look at alone.
func Guard(next http.Handler) http.Handler { return guard(next) }

// Scan returns what the front would run of a body, or the code and text of a refusal.
func Scan(body []byte) (method, tool string, arguments []byte, code int, text string) {
	m, refusal := scan(body)
	if refusal != nil {
		return "", "", nil, refusal.Code, refusal.Message
	}
	if m.name != nil {
		tool = *m.name
	}
	return string(m.method), tool, m.arguments, 0, ""
}
