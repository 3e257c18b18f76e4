package upstream

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/catalogd/catalogd/registry"
	"github.com/catalogd/catalogd/test/internal/harness"
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
	look func(t *testing.T, m *faulty)
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

// soon is the time limit that faults wait for. What is well must be sent, and answered, within it.
const soon = "2s"

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

	{row: "D3", fault: "mute", over: stdioOnly, initialize: soon, bad: fails(registry.Unavailable, "initializeTimeout"), good: fails(registry.Unavailable), look: ended},
	{row: "D3", fault: "mute-at-initialize", over: both, initialize: soon, bad: fails(registry.Unavailable, "initializeTimeout"), good: fails(registry.Unavailable)},
	{row: "D3", fault: "mute-at-list", over: both, call: soon, discovers: true, bad: fails(registry.Timeout, "nothing was sent"), good: neverSent, look: notCalled},
	{row: "D3", fault: "hang", over: both, call: soon, bad: fails(registry.Timeout, "did not answer in time", "may still run"), good: inTime, sent: 1, look: othersGoOn},
	{row: "D3", fault: "deaf", over: stdioOnly, call: soon, bad: fails(registry.Timeout, "may still run"), good: fails(registry.Timeout), sent: 1},
	{row: "D3", fault: "drip", over: both, call: soon, bad: fails(registry.Timeout, "may still run"), good: inTime, sent: 1},

	{row: "D4", fault: "late", over: stdioOnly, call: soon, bad: fails(registry.Timeout, "may still run"), good: inTime, sent: 1, look: ownAnswers},
	{row: "D4", fault: "late-as-another", over: stdioOnly, call: soon, bad: fails(registry.Timeout, "may still run"), good: inTime, sent: 1, look: ownAnswers},

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

	{row: "D8", fault: "id-as-text", over: stdioOnly, call: soon, bad: fails(registry.Timeout, "may still run"), good: inTime, sent: 1, look: dropped},
	{row: "D8", fault: "id-as-text", over: httpOnly, bad: fails(registry.ResultInvalid, "another request"), good: well, sent: 1},
	{row: "D8", fault: "id-twice", over: stdioOnly, bad: answers("bad"), good: well, sent: 1, look: dropped},
	{row: "D8", fault: "unknown-id", over: stdioOnly, bad: answers("bad"), good: well, sent: 1, look: dropped},
	{row: "D8", fault: "unknown-id", over: httpOnly, bad: fails(registry.ResultInvalid, "another request"), good: well, sent: 1},
	{row: "D8", fault: "result-and-error", over: stdioOnly, call: soon, bad: fails(registry.Timeout, "may still run"), good: inTime, sent: 1, look: dropped},
	{row: "D8", fault: "result-and-error", over: httpOnly, bad: fails(registry.ResultInvalid, "no MCP message"), good: well, sent: 1},
	{row: "D8", fault: "neither", over: stdioOnly, call: soon, bad: fails(registry.Timeout, "may still run"), good: inTime, sent: 1, look: dropped},
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

	{row: "D19", fault: "foreign-progress", over: both, bad: answers("bad"), good: well, sent: 1, look: noNotifications},
	{row: "D19", fault: "progress-flood", over: both, bad: answers("bad"), good: well, sent: 1, look: cappedNotifications},
	{row: "D19", fault: "log-flood", over: both, bad: answers("bad"), good: well, sent: 1, look: noNotifications},
	{row: "D19", fault: "stderr-flood", over: stdioOnly, bad: answers("bad"), good: well, sent: 1, look: sameProcess},

	{row: "D21", fault: "cut", over: httpOnly, bad: fails(registry.Unavailable, "outcome of the call is unknown"), good: well, sent: 1},
	{row: "D21", fault: "cut-in-result", over: httpOnly, bad: fails(registry.Unavailable, "outcome of the call is unknown"), good: well, sent: 1},
	{row: "D21", fault: "resumes", over: httpOnly, bad: answers("bad"), good: well, sent: 1},
	{row: "D21", fault: "resumes-another", over: httpOnly, call: soon, bad: fails(registry.Timeout, "may still run"), good: inTime, sent: 1},
	{row: "D21", fault: "resumes-with-404", over: httpOnly, bad: fails(registry.Unavailable, "outcome of the call is unknown"), good: well, sent: 1},

	{row: "D22", fault: "grandchild", over: stdioOnly, bad: fails(registry.Unavailable, "exit status 4", "outcome of the call is unknown"), good: well, sent: 1, look: grandchildGone},
}

// name is the server of a fault.
func (m misbehaviour) name(over string) string {
	return over + "_" + strings.NewReplacer("/", "_", ".", "_", "-", "_").Replace(m.fault)
}

// faulty is one misbehaviour while its test runs.
type faulty struct {
	*harness.Daemon
	server string
	// journal is what the server wrote down.
	journal string
	// heard are the notifications before the bad call's result.
	heard []string
}

// lines are those of the journal that begin so.
func (m *faulty) lines(t *testing.T, begin string) (all []string) {
	t.Helper()
	for line := range strings.Lines(harness.ReadFile(t, m.journal)) {
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
				at, sibling := &faulty{Daemon: r, server: m.name(over)}, &faulty{Daemon: r, server: over + "_none"}
				at.journal = filepath.Join(journals, at.server)
				if over == "http" {
					at.journal = filepath.Join(journals, strings.ReplaceAll(m.fault, "/", "-"))
				}
				if m.call != "" && !m.discovers { // connecting counts for a call's time
					harness.Await(t, "the server to be connected", func() bool { return at.answer(t, "good").code == "" })
				}
				var bad sync.WaitGroup
				bad.Go(func() { at.heard = at.expect(t, "bad", m.bad) })
				sibling.expect(t, "good", well) // while the bad one does what it does
				bad.Wait()
				if m.sent > 0 {
					harness.Await(t, "the server to have got the calls", func() bool { return len(at.lines(t, "tools/call bad")) >= m.sent })
				}
				if good := m.good; good.codes != nil || good.says != nil {
					at.expect(t, "good", good)
				} else {
					harness.Await(t, "the server to answer again", func() bool { return at.answer(t, "good").code == "" })
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

// answer calls a tool of the server, and asks for progress.
func (m *faulty) answer(t *testing.T, tool string) answered {
	t.Helper()
	name := m.server + "_" + tool
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":{"n":1},"_meta":{"progressToken":"mine","io.modelcontextprotocol/logLevel":"debug","io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"sampling":{},"roots":{}}}}}`, name, harness.Modern)
	return readAnswer(t, m.Post(t, "/mcp", body, "Mcp-Protocol-Version", harness.Modern, "Mcp-Method", "tools/call", "Mcp-Name", name))
}

// expect calls a tool of the server, compares, and returns what was said before the result.
func (m *faulty) expect(t *testing.T, tool string, want outcome) []string {
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
