package httpapi

import (
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// tag groups the operations in the description.
type tag string

const (
	tagTools   tag = "tools"
	tagCalls   tag = "calls"
	tagIntents tag = "intents"
	tagDaemon  tag = "daemon"
	tagMCP     tag = "mcp"
)

// Where a parameter is.
const (
	inPath   = "path"
	inQuery  = "query"
	inHeader = "header"
)

// parameter describes a parameter. The handler checks its value, but for what readQuery checks.
type parameter struct {
	name, in, about string
	schema          *jsonschema.Schema
	many            bool // it may be given several times
	empty           bool // it may be empty
}

// body describes the body of a request, which is JSON.
type body struct {
	about    string
	of       schemaOf
	required bool
	unread   string // why the body is answered 400
}

// answer describes one status.
type answer struct {
	status  int
	about   string
	headers []string
	content []content // none: no body
}

// content is one form of a body.
type content struct {
	media string
	of    schemaOf
}

// schemaOf is a Go type, a schema where no type says it, or one of several.
type schemaOf struct {
	typ    reflect.Type
	schema *jsonschema.Schema
	any    []schemaOf
}

func typed[T any]() schemaOf { return schemaOf{typ: reflect.TypeFor[T]()} }

func anyOf(all ...schemaOf) schemaOf { return schemaOf{any: all} }

func inWords(s *jsonschema.Schema) schemaOf { return schemaOf{schema: s} }

const (
	mediaJSON   = "application/json"
	mediaText   = "text/plain; charset=utf-8"
	mediaEvents = "text/event-stream"
)

func asJSON[T any]() []content { return []content{{mediaJSON, typed[T]()}} }

func asText() []content { return []content{{mediaText, typed[string]()}} }

// failure is the answer with an Error.
func failure(status int, about string, headers ...string) answer {
	return answer{status, about, headers, asJSON[Error]()}
}

// Error is the answer to a request that failed.
type Error struct {
	// Error says what is wrong and what to do, for people to read.
	Error string `json:"error"`
}

// fault is the answer where a handler panics.
const fault = "A fault of catalogd. The operator's log has it under the id in the message."

// around are the answers that a request may get from what is around the handler of its operation: the check of
// Host and Origin, the check of the token, the reading of the query and the body, and the recovery from a panic.
// An answer of the operation with the same status takes their place.
func (o *operation) around() []answer {
	may := "Host or Origin is not this server's"
	if o.needs == admin {
		may += ", or the token does not have --admin"
	}
	out := []answer{failure(http.StatusForbidden, may+"."), failure(http.StatusInternalServerError, fault)}
	if o.needs != nothing {
		out = append(out,
			failure(http.StatusUnauthorized, "A token is needed, or the one shown is not good.", "WWW-Authenticate"),
			failure(http.StatusTooManyRequests, "Too many requests with tokens that are not good.", "Retry-After"),
		)
	}
	if !o.loose {
		bad := "The query has a parameter that is unknown, repeated, empty, or not what it may be."
		if o.body != nil {
			bad += " " + o.body.unread
		}
		out = append(out, failure(http.StatusBadRequest, bad))
	}
	if o.body != nil {
		out = append(out,
			failure(http.StatusNotAcceptable, "Accept does not allow application/json."),
			failure(http.StatusRequestTimeout, "The body did not come in time."),
			failure(http.StatusRequestEntityTooLarge, "The body is too large."),
			failure(http.StatusUnsupportedMediaType, "The body is not declared as application/json in UTF-8."),
		)
	}
	return out
}

// all are the answers of the operation, by status.
func (o *operation) all() []answer {
	out := slices.Clone(o.answers)
	for _, a := range o.around() {
		if !slices.ContainsFunc(o.answers, func(own answer) bool { return own.status == a.status }) {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, func(a, b answer) int { return a.status - b.status })
	return out
}

// who says in words what the operation requires of its caller.
func (o *operation) who() string {
	return [...]string{nothing: "everyone", someone: "a token", admin: "an admin's token"}[o.needs]
}

// aboutVariables describes the variable segments of paths.
var aboutVariables = map[string]string{
	"branch": "The name of a branch. One that the caller may not open is answered like one that does not exist.",
	"tool":   "The name of a tool, as the branch shows it.",
	"id":     "The id of the call or intent: 32 hexadecimal digits.",
}

// aboutHeaders describes the headers of answers.
var aboutHeaders = map[string]string{
	"Allow":            "The methods of the path.",
	callsHeader:        "The ids of the calls, in their order, separated by commas. Absent for more than 64 calls.",
	"Location":         "The path of the new branch.",
	"Retry-After":      "After how many whole seconds to try again, rounded up.",
	"WWW-Authenticate": "The scheme, Bearer, and invalid_token where a token was shown.",
}

// headerSchema is that of the values of a header of answers.
func headerSchema(name string) *jsonschema.Schema {
	if name == "Retry-After" {
		return number(1, 1<<53-1)
	}
	return text("")
}

func text(about string, enum ...string) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "string", Description: about}
	for _, one := range enum {
		s.Enum = append(s.Enum, one)
	}
	return s
}

func names[T ~string](all []T) (out []string) {
	for _, one := range all {
		out = append(out, string(one))
	}
	return out
}

func number(least, most float64) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "integer", Minimum: &least, Maximum: &most}
}

// sentence ends a text with a full stop, for the description.
func sentence(s string) string {
	if s == "" || strings.HasSuffix(s, ".") {
		return s
	}
	return s + "."
}
