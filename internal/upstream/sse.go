package upstream

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
)

// serverRequests is how many requests of the server's one stream may carry; further ones get no answer.
const serverRequests = 16

// events reads a server's event stream (HTML Living Standard, 9.2) and passes on what the answer to one request may
// consist of: the response to it, after which the stream ends, and the fields by which a cut stream is resumed. Notifications
// go to heard, and the first few requests of the server's to asked. Responses to other requests and whatever is no message are dropped:
// mcp-go takes the first response for the answer whatever its id is, and a goroutine of it would wait for ever to deliver
// a third.
type events struct {
	body  io.ReadCloser
	lines *bufio.Reader
	max   int64
	// id is the request's, as RequestId.String has it; empty takes the first response.
	id string
	// heard takes each notification, before the answer that follows it; nil where nobody listens.
	heard func(method string, params json.RawMessage)

	// ignored is called for each event that is dropped; nil where nobody counts.
	ignored func()

	// asked takes each request of the server's; nil where nobody answers.
	asked func(id mcp.RequestId, method string, params json.RawMessage)

	ready    bytes.Buffer // what Read hands out
	data     []byte
	hasData  bool
	fields   []string // id and retry of the event being read
	requests int
	ended    error
}

func newEvents(body io.ReadCloser, x *exchange) *events {
	return &events{body: body, lines: bufio.NewReaderSize(body, 32<<10), max: x.limit, id: x.id, heard: x.heard, ignored: x.ignored, asked: x.asked}
}

func (e *events) Close() error { return e.body.Close() }

func (e *events) Read(p []byte) (int, error) {
	for e.ready.Len() == 0 {
		if e.ended != nil {
			return 0, e.ended
		}
		e.next()
	}
	return e.ready.Read(p)
}

// next reads one line.
func (e *events) next() {
	line, err := readLine(e.lines, e.max)
	if err != nil {
		if err == io.EOF {
			e.fields = nil // an event that was not finished is nothing to resume from
			e.dispatch()
		}
		if e.ended == nil {
			e.ended = err
		}
		return
	}
	name, value, _ := strings.Cut(string(line), ":")
	value = strings.TrimPrefix(value, " ")
	switch {
	case len(line) == 0:
		e.dispatch()
	case name == "data":
		if e.hasData {
			// A line end inside an event is white space between JSON tokens; a space is one too, and keeps the event on
			// one line.
			e.data = append(e.data, ' ')
		}
		e.data, e.hasData = append(e.data, value...), true
	case name == "id" || name == "retry":
		if len(e.fields) < 4 {
			e.fields = append(e.fields, name+": "+value)
		}
	}
}

// dispatch hands on the event that was read.
func (e *events) dispatch() {
	data, fields := e.data, e.fields
	e.data, e.hasData, e.fields = nil, false, nil
	passed, last := e.passes(data)
	if !passed && len(fields) == 0 {
		return
	}
	for _, f := range fields {
		e.ready.WriteString(f + "\n")
	}
	if passed {
		e.ready.WriteString("data: ")
		e.ready.Write(data)
		e.ready.WriteString("\n")
	}
	e.ready.WriteString("\n")
	if last {
		e.ended = io.EOF
	}
}

func (e *events) passes(data []byte) (passed, last bool) {
	var m message
	switch {
	case len(data) == 0:
		return false, false
	case json.Unmarshal(data, &m) != nil:
	case m.answers() && (e.id == "" || m.ID.String() == e.id):
		return true, true
	case m.Method != nil && m.ID != nil && e.requests < serverRequests && e.asked != nil:
		e.requests++
		e.asked(*m.ID, *m.Method, m.Params)
		return false, false
	case m.Method != nil && m.ID == nil:
		if e.heard != nil {
			e.heard(*m.Method, m.Params)
		}
		return false, false
	}
	if e.ignored != nil {
		e.ignored()
	}
	return false, false
}
