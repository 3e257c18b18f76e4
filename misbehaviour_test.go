package catalogd_test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/internal/lock"
	"github.com/catalogd/catalogd/registry"
)

// misbehaviour is one fault of testdata/badserver, and what it comes to for a client of catalogd.
type misbehaviour struct {
	// row is the number in the list of bad inputs.
	row, fault string
	over       []string // stdio, http
	// initialize and call are the server's time limits; a minute by default, which no fault waits for.
	initialize, call string
	// discovers says that the server's tools are discovered, and were locked when it was well.
	discovers bool
	// bad is what the call of the tool with the fault answers, good what the server's other tool answers after it.
	bad, good outcome
	// sent is how many calls of the tool with the fault came to the server.
	sent int
	// look looks further.
	look func(t *testing.T, m *met)
}

// outcome is what a client is answered: an error of one of these codes with parts of its text, or without codes a result
// with parts of its text.
type outcome struct {
	codes []registry.ErrorCode
	says  []string
}

func answers(says ...string) outcome { return outcome{says: says} }

func fails(code registry.ErrorCode, says ...string) outcome {
	return outcome{[]registry.ErrorCode{code}, says}
}

var (
	// well is what the tool good answers of a server that is well again at once; inTime stands for one that may take
	// its time about it.
	well   = answers(`good{"n":1}`)
	inTime = outcome{}
	// neverSent is the answer of a server that takes longer to connect than a call may wait.
	neverSent = outcome{[]registry.ErrorCode{registry.Timeout, registry.Unavailable}, nil}
)

var (
	both      = []string{"stdio", "http"}
	stdioOnly = []string{"stdio"}
	httpOnly  = []string{"http"}
)

// misbehaviours are the faults. Wherever a call comes to nothing, the text says whether the tool may have run.
var misbehaviours = []misbehaviour{
	{row: "D1", fault: "usage", over: stdioOnly, bad: fails(registry.Unavailable, "exit status 2", "the flag -x is not known"), good: fails(registry.Unavailable, "exit status 2")},
	{row: "D1", fault: "usage-on-stdout", over: stdioOnly, bad: fails(registry.Unavailable, "exit status 0"), good: fails(registry.Unavailable)},
	{row: "D1", fault: "exit-at-initialize", over: stdioOnly, bad: fails(registry.Unavailable, "exit status 3", "no license found"), good: fails(registry.Unavailable)},
	{row: "D1", fault: "killed-at-start", over: stdioOnly, bad: fails(registry.Unavailable, "killed"), good: fails(registry.Unavailable)},
	{row: "D1", fault: "exit-at-discover", over: stdioOnly, bad: answers("bad"), good: well, sent: 1},
	{row: "D1", fault: "refuses-initialize", over: stdioOnly, bad: fails(registry.Unavailable, "go away"), good: fails(registry.Unavailable)},
	{row: "D1", fault: "nobody", over: httpOnly, bad: fails(registry.Unavailable, "connection refused"), good: fails(registry.Unavailable, "connection refused")},

	{row: "D2", fault: "crash", over: stdioOnly, bad: fails(registry.Unavailable, "exit status 3", "out of luck", "outcome of the call is unknown"), good: well, sent: 1},
	{row: "D2", fault: "killed", over: stdioOnly, bad: fails(registry.Unavailable, "killed", "outcome of the call is unknown"), good: well, sent: 1},
	{row: "D2", fault: "closes-stdout", over: stdioOnly, bad: fails(registry.Unavailable, "closed its standard output", "outcome of the call is unknown"), good: well, sent: 1},
	{row: "D2", fault: "exit-after-answer", over: stdioOnly, bad: answers("bad"), good: inTime, sent: 1},
	{row: "D2", fault: "hangs-up", over: httpOnly, bad: fails(registry.Unavailable, "outcome of the call is unknown"), good: well, sent: 1},

	{row: "D3", fault: "mute", over: stdioOnly, initialize: "500ms", bad: fails(registry.Unavailable, "initializeTimeout"), good: fails(registry.Unavailable), look: ended},
	{row: "D3", fault: "mute-at-initialize", over: both, initialize: "500ms", bad: fails(registry.Unavailable, "initializeTimeout"), good: fails(registry.Unavailable)},
	{row: "D3", fault: "mute-at-list", over: both, call: "500ms", discovers: true, bad: fails(registry.Timeout, "nothing was sent"), good: neverSent, look: notCalled},
	{row: "D3", fault: "hang", over: both, call: "500ms", bad: fails(registry.Timeout, "did not answer in time", "may still run"), good: inTime, sent: 1, look: othersGoOn},
	{row: "D3", fault: "deaf", over: stdioOnly, call: "500ms", bad: fails(registry.Timeout, "may still run"), good: fails(registry.Timeout), sent: 1},
	{row: "D3", fault: "drip", over: both, call: "500ms", bad: fails(registry.Timeout, "may still run"), good: inTime, sent: 1},

	{row: "D4", fault: "late", over: stdioOnly, call: "500ms", bad: fails(registry.Timeout, "may still run"), good: inTime, sent: 1, look: ownAnswers},
	{row: "D4", fault: "late-as-another", over: stdioOnly, call: "500ms", bad: fails(registry.Timeout, "may still run"), good: inTime, sent: 1, look: ownAnswers},

	{row: "D6", fault: "huge", over: both, bad: fails(registry.OutputTooLarge, "16777216 bytes"), good: well, sent: 1},
	{row: "D6", fault: "many-blocks", over: both, bad: fails(registry.OutputTooLarge, "blocks"), good: well, sent: 1},
	{row: "D6", fault: "endless-line", over: both, bad: fails(registry.OutputTooLarge, "16777216 bytes"), good: well, sent: 1},
	{row: "D6", fault: "bomb", over: httpOnly, bad: outcome{[]registry.ErrorCode{registry.OutputTooLarge, registry.Unavailable}, nil}, good: well, sent: 1},
	{row: "D6", fault: "long-headers", over: httpOnly, bad: fails(registry.Unavailable, "outcome of the call is unknown"), good: well, sent: 1},
	{row: "D6", fault: "long-greeting", over: both, bad: answers("bad"), good: well, sent: 1},

	{row: "D7", fault: "talks-first", over: stdioOnly, bad: answers("bad"), good: well, sent: 1},
	{row: "D7", fault: "log-on-stdout", over: stdioOnly, bad: answers("bad"), good: well, sent: 1, look: droppedLines},
	{row: "D7", fault: "bom", over: stdioOnly, bad: answers("bad"), good: well, sent: 1, look: sameProcess},
	{row: "D7", fault: "bom", over: httpOnly, bad: answers("bad"), good: well, sent: 1},
	{row: "D7", fault: "two-on-a-line", over: stdioOnly, bad: answers("bad"), good: well, sent: 1, look: droppedLines},
	{row: "D7", fault: "two-at-once", over: httpOnly, bad: fails(registry.Unavailable, "no MCP message", "outcome of the call is unknown"), good: well, sent: 1},
	{row: "D7", fault: "no-json", over: stdioOnly, bad: answers("bad"), good: well, sent: 1, look: droppedLines},
	{row: "D7", fault: "no-json", over: httpOnly, bad: fails(registry.Unavailable, "no MCP message"), good: well, sent: 1},
	{row: "D7", fault: "wrong-charset", over: httpOnly, bad: fails(registry.Unavailable, "no MCP message"), good: well, sent: 1},
	{row: "D7", fault: "strays", over: stdioOnly, bad: fails(registry.Unavailable, "10001 lines", "outcome of the call is unknown"), good: well, sent: 1},
	{row: "D7", fault: "stream-of-strays", over: httpOnly, bad: answers("bad"), good: well, sent: 1, look: dropped},

	{row: "D8", fault: "id-as-text", over: stdioOnly, call: "500ms", bad: fails(registry.Timeout, "may still run"), good: inTime, sent: 1, look: dropped},
	{row: "D8", fault: "id-as-text", over: httpOnly, bad: fails(registry.ResultInvalid, "another request"), good: well, sent: 1},
	{row: "D8", fault: "id-twice", over: stdioOnly, bad: answers("bad"), good: well, sent: 1, look: dropped},
	{row: "D8", fault: "unknown-id", over: stdioOnly, bad: answers("bad"), good: well, sent: 1, look: dropped},
	{row: "D8", fault: "unknown-id", over: httpOnly, bad: fails(registry.ResultInvalid, "another request"), good: well, sent: 1},
	{row: "D8", fault: "result-and-error", over: stdioOnly, call: "500ms", bad: fails(registry.Timeout, "may still run"), good: inTime, sent: 1, look: dropped},
	{row: "D8", fault: "result-and-error", over: httpOnly, bad: fails(registry.ResultInvalid, "no MCP message"), good: well, sent: 1},
	{row: "D8", fault: "neither", over: stdioOnly, call: "500ms", bad: fails(registry.Timeout, "may still run"), good: inTime, sent: 1, look: dropped},
	{row: "D8", fault: "neither", over: httpOnly, bad: fails(registry.ResultInvalid, "no MCP message"), good: well, sent: 1},
	{row: "D8", fault: "result-list", over: both, bad: fails(registry.ResultInvalid, "not a JSON object"), good: well, sent: 1},
	{row: "D8", fault: "result-empty", over: both, bad: answers(), good: well, sent: 1}, // as a client of its own takes it
	{row: "D8", fault: "content-text", over: both, bad: fails(registry.ResultInvalid, "not a list"), good: well, sent: 1},
	{row: "D8", fault: "content-of-texts", over: both, bad: fails(registry.ResultInvalid, "block 0"), good: well, sent: 1},
	{row: "D8", fault: "is-error-text", over: both, bad: fails(registry.ResultInvalid, "isError"), good: well, sent: 1},

	{row: "D10", fault: "twice-named", over: both, discovers: true, bad: fails(registry.Unavailable, "quarantined"), good: well, look: hidden},
	{row: "D10", fault: "same-cursor", over: both, discovers: true, bad: fails(registry.Unavailable, "goes round in a circle"), good: fails(registry.Unavailable)},
	{row: "D10", fault: "new-cursors", over: both, discovers: true, bad: fails(registry.Unavailable, "more than 2000 pages"), good: fails(registry.Unavailable)},
	{row: "D10", fault: "many-tools", over: both, discovers: true, bad: fails(registry.Unavailable, "more than 50000 tools"), good: fails(registry.Unavailable)},
	{row: "D10", fault: "list-of-nothing", over: both, discovers: true, bad: fails(registry.Unavailable, "can't be read"), good: fails(registry.Unavailable)},
	{row: "D10", fault: "no-list", over: stdioOnly, discovers: true, bad: fails(registry.Unavailable, "-32601"), good: fails(registry.Unavailable)},
	{row: "D10", fault: "one-bad-schema", over: both, discovers: true, bad: fails(registry.Unavailable, "quarantined"), good: well, look: hidden},
	{row: "D11", fault: "list-changed-storm", over: both, discovers: true, bad: answers("bad"), good: well, sent: 1, look: askedOnce},

	{row: "D14", fault: "401", over: httpOnly, bad: fails(registry.Unauthorized, "401", "credentials", "headers"), good: well, sent: 1},
	{row: "D14", fault: "at-handshake/401", over: httpOnly, bad: fails(registry.Unauthorized, "401", "credentials", "headers"), good: fails(registry.Unauthorized)},
	{row: "D15", fault: "403", over: httpOnly, bad: fails(registry.Unauthorized, "403", "nothing was run"), good: well, sent: 1},
	{row: "D15", fault: "at-handshake/403", over: httpOnly, bad: fails(registry.Unauthorized, "403"), good: fails(registry.Unauthorized)},
	{row: "D15", fault: "session-gone", over: httpOnly, bad: answers("bad"), good: well, sent: 2, look: initialisedTwice},
	{row: "D15", fault: "404", over: httpOnly, bad: fails(registry.Unavailable, "404", "nothing was run"), good: well, sent: 2, look: initialisedTwice},
	{row: "D15", fault: "at-handshake/404", over: httpOnly, bad: fails(registry.Unavailable, "404"), good: fails(registry.Unavailable)},
	{row: "D15", fault: "405", over: httpOnly, bad: fails(registry.Unavailable, "405"), good: well, sent: 1},
	{row: "D15", fault: "at-handshake/405", over: httpOnly, bad: fails(registry.Unavailable, "old SSE transport not supported"), good: fails(registry.Unavailable)},
	{row: "D15", fault: "429", over: httpOnly, bad: fails(registry.Unavailable, "429", "Retry-After: 30"), good: well, sent: 1},
	{row: "D15", fault: "at-handshake/429", over: httpOnly, bad: fails(registry.Unavailable, "429", "Retry-After: 30"), good: fails(registry.Unavailable)},
	{row: "D15", fault: "500", over: httpOnly, bad: fails(registry.Unavailable, "500", "outcome of the call is unknown"), good: well, sent: 1},
	{row: "D15", fault: "502", over: httpOnly, bad: fails(registry.Unavailable, "502 Bad Gateway", "outcome of the call is unknown"), good: well, sent: 1},
	{row: "D15", fault: "at-handshake/502", over: httpOnly, bad: fails(registry.Unavailable, "502 Bad Gateway"), good: fails(registry.Unavailable)},
	{row: "D15", fault: "204", over: httpOnly, bad: fails(registry.Unavailable, "outcome of the call is unknown"), good: well, sent: 1},
	{row: "D15", fault: "at-handshake/204", over: httpOnly, bad: fails(registry.Unavailable), good: fails(registry.Unavailable)},
	{row: "D15", fault: "302", over: httpOnly, bad: fails(registry.Unavailable), good: well, sent: 1},
	{row: "D15", fault: "307", over: httpOnly, bad: fails(registry.Unavailable, "redirects"), good: well, sent: 1},
	{row: "D15", fault: "at-handshake/307", over: httpOnly, bad: fails(registry.Unavailable, "redirects"), good: fails(registry.Unavailable)},
	{row: "D15", fault: "slash-307", over: httpOnly, bad: answers("bad"), good: well, sent: 1},
	{row: "D15", fault: "slash-308", over: httpOnly, bad: answers("bad"), good: well, sent: 1},
	{row: "D15", fault: "slash-301", over: httpOnly, bad: fails(registry.Unavailable, "301", "/slash-301/", "declare that as url", "would turn the POST into a GET"), good: fails(registry.Unavailable)},
	{row: "D15", fault: "redirect-script", over: httpOnly, bad: fails(registry.Unavailable), good: well, sent: 1},
	{row: "D15", fault: "page", over: httpOnly, bad: fails(registry.Unavailable, "no MCP message", "outcome of the call is unknown"), good: well, sent: 1},
	{row: "D15", fault: "at-handshake/page", over: httpOnly, bad: fails(registry.Unavailable), good: fails(registry.Unavailable)},

	{row: "D16", fault: "tls-expired", over: httpOnly, bad: fails(registry.Unavailable, "certificate has expired"), good: fails(registry.Unavailable)},
	{row: "D16", fault: "tls-other-host", over: httpOnly, bad: fails(registry.Unavailable, "certificate", "127.0.0.1"), good: fails(registry.Unavailable)},
	{row: "D16", fault: "tls-unknown-ca", over: httpOnly, bad: fails(registry.Unavailable, "certificate signed by unknown authority"), good: fails(registry.Unavailable)},
	{row: "D16", fault: "tls-1.0", over: httpOnly, bad: fails(registry.Unavailable, "protocol version"), good: fails(registry.Unavailable)},

	{row: "D17", fault: "unknown-version", over: both, bad: fails(registry.Unavailable, "1999-12-31", "2025-11-25"), good: fails(registry.Unavailable)},
	{row: "D17", fault: "older-version", over: both, bad: answers("bad"), good: well, sent: 1},
	{row: "D17", fault: "no-tools", over: both, bad: fails(registry.Unavailable, "declares no tools", "2025-06-18"), good: fails(registry.Unavailable, "declares no tools")},
	{row: "D17", fault: "wrong-greeting", over: both, bad: fails(registry.Unavailable, "handshake"), good: fails(registry.Unavailable)},

	{row: "D18", fault: "asks", over: both, bad: answers("-32601", "q0", "q1", "q2", "q3"), good: well, sent: 1},
	{row: "D18", fault: "asks-for-input", over: both, bad: fails(registry.BindingFailed, "does not relay"), good: well, sent: 1},

	{row: "D19", fault: "foreign-progress", over: both, bad: answers("bad"), good: well, sent: 1, look: heardNothing},
	{row: "D19", fault: "progress-flood", over: both, bad: answers("bad"), good: well, sent: 1, look: heardSome},
	{row: "D19", fault: "log-flood", over: both, bad: answers("bad"), good: well, sent: 1, look: heardNothing},
	{row: "D19", fault: "stderr-flood", over: stdioOnly, bad: answers("bad"), good: well, sent: 1, look: sameProcess},

	{row: "D21", fault: "cut", over: httpOnly, bad: fails(registry.Unavailable, "outcome of the call is unknown"), good: well, sent: 1},
	{row: "D21", fault: "cut-in-result", over: httpOnly, bad: fails(registry.Unavailable, "outcome of the call is unknown"), good: well, sent: 1},
	{row: "D21", fault: "resumes", over: httpOnly, bad: answers("bad"), good: well, sent: 1},
	{row: "D21", fault: "resumes-another", over: httpOnly, call: "500ms", bad: fails(registry.Timeout, "may still run"), good: inTime, sent: 1},
	{row: "D21", fault: "resumes-with-404", over: httpOnly, bad: fails(registry.Unavailable, "outcome of the call is unknown"), good: well, sent: 1},

	{row: "D22", fault: "grandchild", over: stdioOnly, bad: fails(registry.Unavailable, "exit status 4", "outcome of the call is unknown"), good: well, sent: 1, look: grandchildGone},
}

// name is the server of a fault.
func (m misbehaviour) name(over string) string {
	return over + "_" + strings.NewReplacer("/", "_", ".", "_", "-", "_").Replace(m.fault)
}

// met is one misbehaviour while its test runs.
type met struct {
	*running
	server string
	// journal is what the server wrote down.
	journal string
	// heard are the notifications before the bad call's result.
	heard []string
}

// lines are those of the journal that begin so.
func (m *met) lines(t *testing.T, begin string) (all []string) {
	t.Helper()
	for line := range strings.Lines(read(t, m.journal)) {
		if strings.HasPrefix(line, begin) {
			all = append(all, strings.TrimSpace(line))
		}
	}
	return all
}

// TestBadInputUpstream is the list of faults of upstream servers, each of which costs no more than the calls that it
// concerns: the outcome is what a client of catalogd is answered, and a good server goes on answering beside it.
func TestBadInputUpstream(t *testing.T) {
	t.Parallel()
	r, journals := misbehaving(t)
	for _, m := range misbehaviours {
		for _, over := range m.over {
			t.Run(m.row+"/"+m.fault+"/"+over, func(t *testing.T) {
				t.Parallel()
				at, sibling := &met{running: r, server: m.name(over)}, &met{running: r, server: over + "_none"}
				at.journal = filepath.Join(journals, at.server)
				if over == "http" {
					at.journal = filepath.Join(journals, strings.ReplaceAll(m.fault, "/", "-"))
				}
				if m.call != "" && !m.discovers { // connecting counts for a call's time
					await(t, "the server to be connected", func() bool { return at.answer(t, "good").code == "" })
				}
				var bad sync.WaitGroup
				bad.Go(func() { at.heard = at.expect(t, "bad", m.bad) })
				sibling.expect(t, "good", well) // while the bad one does what it does
				bad.Wait()
				if m.sent > 0 {
					await(t, "the server to have got the calls", func() bool { return len(at.lines(t, "tools/call bad")) >= m.sent })
				}
				if good := m.good; good.codes != nil || good.says != nil {
					at.expect(t, "good", good)
				} else {
					await(t, "the server to answer again", func() bool { return at.answer(t, "good").code == "" })
					at.expect(t, "good", well)
				}
				sibling.expect(t, "good", well)
				if m.sent > 0 {
					if got := at.lines(t, "tools/call bad"); len(got) != m.sent {
						t.Errorf("it was sent %d times: %s", len(got), got)
					}
				}
				if m.look != nil {
					m.look(t, at)
				}
			})
		}
	}
	t.Cleanup(func() { // when all of them have ended
		if called, err := os.ReadFile(filepath.Join(journals, "canary")); err == nil {
			t.Errorf("a server made catalogd call another address:\n%s", called)
		}
	})
}

// answered is what a client was answered to one call.
type answered struct {
	code  registry.ErrorCode
	text  string
	heard []string
	raw   string
}

// answer calls a tool of the server, and asks for progress.
func (m *met) answer(t *testing.T, tool string) answered {
	t.Helper()
	name := m.server + "_" + tool
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":{"n":1},"_meta":{"progressToken":"mine","io.modelcontextprotocol/logLevel":"debug","io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"sampling":{},"roots":{}}}}}`, name, modernEra)
	return readAnswer(t, m.post(t, "/mcp", body, "Mcp-Protocol-Version", modernEra, "Mcp-Method", "tools/call", "Mcp-Name", name))
}

// post sends one message to a path, with headers, and returns what comes back.
func (r *running) post(t *testing.T, path, body string, headers ...string) string {
	t.Helper()
	_, raw := r.exchange(t, path, body, headers...)
	return raw
}

func (r *running) exchange(t *testing.T, path, body string, headers ...string) (http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	headers = append([]string{"Content-Type", "application/json", "Accept", "application/json, text/event-stream"}, headers...)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.Header, string(raw)
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

// expect calls a tool of the server, compares, and returns what was said before the result.
func (m *met) expect(t *testing.T, tool string, want outcome) []string {
	t.Helper()
	got := m.answer(t, tool)
	if got.code != "" && !slices.Contains(want.codes, got.code) || got.code == "" && want.codes != nil {
		t.Errorf("%s of %s: code %q, want %q: %.500s", tool, m.server, got.code, want.codes, got.text)
	}
	for _, part := range want.says {
		if !strings.Contains(got.text, part) {
			t.Errorf("%s of %s: %q is not in %.500q", tool, m.server, part, got.text)
		}
	}
	for _, never := range []string{"<html", "for no model", "javascript:", "\x1b"} {
		if strings.Contains(got.raw, never) {
			t.Errorf("%s of %s: %q reaches the client: %.500q", tool, m.server, never, got.raw)
		}
	}
	return got.heard
}

// misbehaving serves a catalog with a server for each fault, and returns the folder of their journals.
func misbehaving(t *testing.T) (*running, string) {
	t.Helper()
	journals := t.TempDir()
	program := badserver(t)
	at := badWeb(t, program, journals)
	var catalog, entries strings.Builder
	fmt.Fprintf(&entries, "  children: {command: [%s, stdio]}\n", program)
	for _, name := range []string{"http", "nobody", "tls-expired", "tls-other-host", "tls-unknown-ca", "tls-1.0"} {
		host, port, _ := strings.Cut(at[name], ":")
		scheme := "http"
		if strings.HasPrefix(name, "tls") {
			scheme = "https"
		}
		fmt.Fprintf(&entries, "  %s: {scheme: %s, host: %s, port: %s, addresses: [127.0.0.0/8]}\n", strings.ReplaceAll(name, ".", "-"), scheme, host, port)
	}
	locked := &lock.File{}
	all := append([]misbehaviour{{fault: "none", over: both}}, misbehaviours...)
	for _, m := range all {
		for _, over := range m.over {
			name := m.name(over)
			transport := fmt.Sprintf("stdio: {command: %q, args: [\"stdio\", %q, %q]}", program, m.fault, filepath.Join(journals, name))
			if over == "http" {
				address := "http://" + at["http"]
				if m.fault == "nobody" || strings.HasPrefix(m.fault, "tls") {
					address = map[bool]string{true: "https://", false: "http://"}[m.fault != "nobody"] + at[m.fault]
				}
				transport = fmt.Sprintf("http: url: %q", address+"/"+m.fault)
			}
			fmt.Fprintf(&catalog, "servers: %[1]s: {transport: %[2]s, prefix: \"%[3]s_\", connectTimeout: %[4]q, initializeTimeout: %[4]q, callTimeout: %[5]q", name, transport, name,
				cmp.Or(m.initialize, "60s"), cmp.Or(m.call, "60s"))
			if m.discovers {
				catalog.WriteString(", discover: {}}\n")
				locked.Put(lockedBad(name))
				continue
			}
			catalog.WriteString("}\n")
			for _, tool := range []string{"bad", "good"} {
				fmt.Fprintf(&catalog, "tools: %s_%s: {description: \"A tool.\", effect: \"read\", strictness: \"open\", timeout: \"60s\", binding: mcp: {server: %q, tool: %q}}\n", name, tool, name, tool)
			}
		}
	}
	return upstreams(t, catalog.String(), entries.String(), locked), journals
}

// upstreams serves a catalog of servers with their trust entries and what is locked of them. Whoever calls hears no log
// messages, but at the branch loud.
func upstreams(t *testing.T, catalog, entries string, locked *lock.File) *running {
	t.Helper()
	dir := assemble(t, "testdata/conformance")
	if err := os.Remove(filepath.Join(dir, "catalog/conformance.cue")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "catalog/servers.cue"), "package catalog\n\nbranches: {default: {}, loud: {}}\n\n"+catalog)
	write(t, filepath.Join(dir, "policy/trust/data.yaml"), "entries:\n"+entries)
	write(t, filepath.Join(dir, "policy/access/data.yaml"), "branches:\n  default: {tools: [\"*\"]}\n  loud: {tools: [\"*\"], relay: {logging: [\"*\"]}}\n")
	write(t, filepath.Join(dir, lock.Name), string(locked.Marshal()))
	r := run(t, catalogd.Config{Dir: dir})
	for _, w := range r.Status().Warnings {
		t.Error(w)
	}
	return r
}

// badserver builds testdata/badserver.
func badserver(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "badserver")
	if out, err := exec.Command("go", "build", "-o", program, "./testdata/badserver").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// lockedBad is what a bad server offered when it was well.
func lockedBad(name string) lock.Server {
	const definition = `{"name":%q,"description":%q,"inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`
	return lockedAs(name, fmt.Sprintf(definition, "bad", "Has the fault."), fmt.Sprintf(definition, "good", "Answers."))
}

// lockedAs locks tools of a server that calls itself bad, all as reads.
func lockedAs(name string, definitions ...string) lock.Server {
	var raw []json.RawMessage
	for _, d := range definitions {
		raw = append(raw, json.RawMessage(d))
	}
	every := func(string) bool { return true }
	s, _ := lock.Merge(lock.Server{Name: name}, lock.ReadOffer(lock.Identity{Name: "bad", Version: "1", Protocol: "2025-06-18"}, raw), every, every, time.Unix(0, 0))
	return s
}

// badWeb starts the bad servers over HTTP and returns where they are.
func badWeb(t *testing.T, program, journals string) (at map[string]string) {
	t.Helper()
	cmd := exec.Command(program, "http", journals)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close() // ends it
		if err := cmd.Wait(); err != nil {
			t.Errorf("the bad servers ended with %v", err)
		}
	})
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(line, &at); err != nil {
		t.Fatal(err)
	}
	return at
}

// ended: the process that was given up is gone.
func ended(t *testing.T, m *met) {
	for _, line := range m.lines(t, "started ") {
		awaitGone(t, "with its attempt", pidsIn(t, line))
	}
}

// othersGoOn: while one call hangs, those beside it at the same server are answered.
func othersGoOn(t *testing.T, m *met) {
	var hanging sync.WaitGroup
	hanging.Go(func() { m.expect(t, "bad", fails(registry.Timeout)) })
	await(t, "the call to hang", func() bool { return len(m.lines(t, "tools/call bad")) == 2 })
	await(t, "another call to be answered", func() bool { return m.answer(t, "good").code == "" })
	hanging.Wait()
	if strings.HasPrefix(m.server, "stdio") {
		sameProcess(t, m)
		await(t, "the server to be told of both", func() bool { return len(m.lines(t, "notifications/cancelled ")) == 2 })
	}
}

func pidsIn(t *testing.T, line string) []int {
	t.Helper()
	var word string
	var pid int
	if _, err := fmt.Sscan(line, &word, &pid); err != nil {
		t.Fatal(err)
	}
	return []int{pid}
}

// dropped: what is no message, or answers nothing that was asked, is counted, and doesn't end the connection.
func dropped(t *testing.T, m *met) {
	if m.ignored(t) == 0 {
		t.Error("nothing of it was counted")
	}
	if strings.HasPrefix(m.server, "stdio") {
		sameProcess(t, m)
	}
}

// droppedLines: what is no message is logged once.
func droppedLines(t *testing.T, m *met) {
	dropped(t, m)
	said := 0
	for line := range strings.Lines(m.log.String()) {
		if strings.Contains(line, "what is no MCP message") && strings.Contains(line, `"server":"`+m.server+`"`) {
			said++
		}
	}
	if said != 1 {
		t.Errorf("the log says %d times that there are lines which are no messages", said)
	}
}

func (m *met) ignored(t *testing.T) uint64 {
	t.Helper()
	for _, s := range m.Status().Servers {
		if s.Name == m.server {
			return s.Counts.Ignored
		}
	}
	t.Fatalf("%s is not in the status", m.server)
	return 0
}

// sameProcess: the connection was kept.
func sameProcess(t *testing.T, m *met) {
	if started := m.lines(t, "started "); len(started) != 1 {
		t.Errorf("it was started %d times", len(started))
	}
}

// ownAnswers: an answer that comes late is no other call's.
func ownAnswers(t *testing.T, m *met) {
	sameProcess(t, m)
	var calls sync.WaitGroup
	for range 4 {
		calls.Go(func() { m.expect(t, "good", well) })
	}
	calls.Wait()
	ids := map[string]bool{}
	for _, line := range m.lines(t, "notifications/cancelled ") {
		ids[line] = true
	}
	if len(ids) != len(m.lines(t, "notifications/cancelled ")) {
		t.Errorf("an id was used again: %v", m.lines(t, "notifications/cancelled "))
	}
}

// askedOnce: however often a server says that its tools changed, it is asked when it connects and, at most, once more in
// the seconds of this test.
func askedOnce(t *testing.T, m *met) {
	m.expect(t, "bad", answers("bad"))
	if lists := m.lines(t, "tools/list"); len(lists) > 2 {
		t.Errorf("it was asked %d times for its tools", len(lists))
	}
}

// hidden: from the call on that found it out, the tool is neither listed nor called, and never was.
func hidden(t *testing.T, m *met) {
	await(t, "the tool to be hidden", func() bool { return m.answer(t, "bad").code == registry.UnknownTool })
	notCalled(t, m)
}

func notCalled(t *testing.T, m *met) {
	if got := m.lines(t, "tools/call bad"); got != nil {
		t.Errorf("it was called: %s", got)
	}
}

func initialisedTwice(t *testing.T, m *met) {
	// A server that forgets each session is asked once more when the next call comes.
	if got := m.lines(t, "initialize"); len(got) != 2 && len(got) != 3 {
		t.Errorf("it was initialised %d times", len(got))
	}
}

func heardNothing(t *testing.T, m *met) {
	if len(m.heard) > 0 {
		t.Errorf("the client heard %.500s", m.heard)
	}
}

// heardSome: a flood is cut off, in order, and belongs to the client that asked.
func heardSome(t *testing.T, m *met) {
	if len(m.heard) == 0 || len(m.heard) > 1000 {
		t.Errorf("the client heard %d notifications", len(m.heard))
	}
	for i, said := range m.heard {
		if want := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"mine","progress":%d}}`, i); said != want {
			t.Fatalf("notification %d is %s, want %s", i, said, want)
		}
	}
	if !strings.Contains(m.log.String(), `"tool":"`+m.server+`_bad"`) {
		t.Error("the log doesn't say that it dropped some")
	}
}

func grandchildGone(t *testing.T, m *met) {
	for _, line := range m.lines(t, "grandchild ") {
		awaitGone(t, "with its group", pidsIn(t, line))
	}
}
