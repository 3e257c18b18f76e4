package httpapi

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/catalogd/catalogd/internal/token"
	"github.com/catalogd/catalogd/problem"
)

// The description is an OpenAPI 3.1 document, made of the table of routes. It is public: it is the same for
// every catalog and every caller, so it says nothing that this repository doesn't.
type document struct {
	OpenAPI    string                                     `json:"openapi"`
	Info       documentInfo                               `json:"info"`
	Servers    []map[string]string                        `json:"servers"`
	Security   []map[string][]string                      `json:"security"`
	Tags       []map[string]string                        `json:"tags"`
	Paths      map[string]map[string]*documentedOperation `json:"paths"`
	Components components                                 `json:"components"`
}

type documentInfo struct {
	Title       string            `json:"title"`
	Version     string            `json:"version"`
	Description string            `json:"description"`
	License     map[string]string `json:"license"`
}

type components struct {
	Schemas         map[string]*jsonschema.Schema `json:"schemas"`
	SecuritySchemes map[string]map[string]string  `json:"securitySchemes"`
}

type documentedOperation struct {
	ID          string                       `json:"operationId"`
	Tags        []tag                        `json:"tags"`
	Summary     string                       `json:"summary"`
	Description string                       `json:"description,omitempty"`
	Security    []map[string][]string        `json:"security,omitempty"`
	Parameters  []documentedParameter        `json:"parameters,omitempty"`
	RequestBody *documentedBody              `json:"requestBody,omitempty"`
	Responses   map[string]*documentedAnswer `json:"responses"`
}

type documentedParameter struct {
	Name        string             `json:"name"`
	In          string             `json:"in"`
	Description string             `json:"description"`
	Required    bool               `json:"required,omitempty"`
	Schema      *jsonschema.Schema `json:"schema"`
	// AllowEmpty is only for a parameter of the query.
	AllowEmpty bool `json:"allowEmptyValue,omitempty"`
}

type documentedBody struct {
	Description string           `json:"description"`
	Required    bool             `json:"required,omitempty"`
	Content     map[string]media `json:"content"`
}

type media struct {
	Schema *jsonschema.Schema `json:"schema"`
}

type documentedAnswer struct {
	Description string                      `json:"description"`
	Headers     map[string]documentedHeader `json:"headers,omitempty"`
	Content     map[string]media            `json:"content,omitempty"`
}

type documentedHeader struct {
	Description string             `json:"description"`
	Schema      *jsonschema.Schema `json:"schema"`
}

const bearer = "bearer"

// general is what holds for every path.
const general = `What a daemon serves: the tools of its branches, calls of them in the forms of model providers, intents, and
the daemon's own state. Model Context Protocol has a description of its own.

- **Who.** With tokens, a request shows one as a bearer. Without tokens everyone on this machine is the operator, who is an admin.
- **Errors** are ` + "`{\"error\": \"what is wrong and what to do\"}`" + `. What is hidden from the caller is answered like what does not exist.
- **Methods.** HEAD is answered like GET, without the body. Any other method that a path does not have, OPTIONS among them, is
  answered 405, and the header Allow names those that it has.
- **Paths.** An unknown path is answered 404, and so is one that is not clean (` + "`//`, `..`" + ` or an encoded slash). Nothing is redirected.
- **Web pages** of other origins are refused with 403, and there are no CORS headers.
- **Members** may be added to answers; a reader ignores those that it does not know.
`

// describe makes the description of routes.
func describe(routes []route) document {
	s := newSchemas()
	doc := document{
		OpenAPI: "3.1.1",
		Info: documentInfo{
			Title: "catalogd", Version: "1", Description: general,
			License: map[string]string{"name": "Apache-2.0", "identifier": "Apache-2.0"},
		},
		Servers:  []map[string]string{{"url": "/"}},
		Security: []map[string][]string{{bearer: {}}},
		Tags: []map[string]string{
			{"name": string(tagTools), "description": "Branches and their tools."},
			{"name": string(tagCalls), "description": "Calls of tools."},
			{"name": string(tagIntents), "description": "Calls with a side effect."},
			{"name": string(tagDaemon), "description": "The daemon itself."},
			{"name": string(tagMCP), "description": "Model Context Protocol."},
		},
		Paths: map[string]map[string]*documentedOperation{},
		Components: components{Schemas: s.components, SecuritySchemes: map[string]map[string]string{bearer: {
			"type": "http", "scheme": "bearer",
			"description": "A token that `catalogd token create` has made (docs/access.md). A daemon without tokens needs none.",
		}}},
	}
	for _, to := range routes {
		at := map[string]*documentedOperation{}
		for i := range to.operations {
			at[strings.ToLower(to.operations[i].method)] = to.operations[i].document(to, s)
		}
		doc.Paths[to.path] = at
	}
	return doc
}

func (o *operation) document(to route, s *schemas) *documentedOperation {
	out := &documentedOperation{
		ID: o.id, Tags: []tag{to.tag}, Summary: o.summary,
		Description: strings.TrimSpace(sentence(o.about) + " For " + o.who() + "."),
		Responses:   map[string]*documentedAnswer{},
	}
	if o.needs == nothing {
		out.Security = []map[string][]string{{}, {bearer: {}}}
	}
	for _, name := range to.names {
		out.Parameters = append(out.Parameters, documentedParameter{
			Name: name, In: inPath, Description: aboutVariables[name], Required: true, Schema: text(""),
		})
	}
	for _, p := range o.params {
		out.Parameters = append(out.Parameters, documentedParameter{
			Name: p.name, In: p.in, Description: p.about, Schema: p.schema, AllowEmpty: p.empty,
		})
	}
	if o.body != nil {
		out.RequestBody = &documentedBody{o.body.about, o.body.required, s.content([]content{{mediaJSON, o.body.of}})}
	}
	for _, a := range o.all() {
		answer := &documentedAnswer{Description: a.about, Content: s.content(a.content)}
		for _, name := range a.headers {
			if answer.Headers == nil {
				answer.Headers = map[string]documentedHeader{}
			}
			answer.Headers[name] = documentedHeader{aboutHeaders[name], headerSchema(name)}
		}
		out.Responses[strconv.Itoa(a.status)] = answer
	}
	return out
}

// writeDescription encodes the description of routes.
func writeDescription(routes []route) []byte {
	out, err := json.Marshal(describe(routes))
	if err != nil {
		panic("httpapi: the description always encodes: " + err.Error())
	}
	return append(problem.PrintableJSON(out), '\n')
}

// openapi answers GET /openapi.json.
func (a *API) openapi(w http.ResponseWriter, _ *http.Request, _ token.Caller) {
	w.Header().Set("Content-Type", mediaJSON)
	_, _ = w.Write(a.description()) // fails only if the client has disconnected
}
