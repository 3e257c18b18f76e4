package upstream

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/catalogd/catalogd/registry"
	"github.com/catalogd/catalogd/test/internal/harness"
)

// ended: the process that was given up is gone.
func ended(t *testing.T, m *faulty) {
	for _, line := range m.lines(t, "started ") {
		harness.AwaitGone(t, "with its attempt", pidsIn(t, line))
	}
}

// othersGoOn: while one call hangs, those beside it at the same server are answered.
func othersGoOn(t *testing.T, m *faulty) {
	var hanging sync.WaitGroup
	hanging.Go(func() { m.expect(t, "bad", fails(registry.Timeout)) })
	harness.Await(t, "the call to hang", func() bool { return len(m.lines(t, "tools/call bad")) == 2 })
	harness.Await(t, "another call to be answered", func() bool { return m.answer(t, "good").code == "" })
	hanging.Wait()
	if strings.HasPrefix(m.server, "stdio") {
		sameProcess(t, m)
		harness.Await(t, "the server to be told of both", func() bool { return len(m.lines(t, "notifications/cancelled ")) == 2 })
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
func dropped(t *testing.T, m *faulty) {
	if m.ignored(t) == 0 {
		t.Error("nothing of it was counted")
	}
	if strings.HasPrefix(m.server, "stdio") {
		sameProcess(t, m)
	}
}

// droppedLines: what is no message is logged once.
func droppedLines(t *testing.T, m *faulty) {
	dropped(t, m)
	said := 0
	for line := range strings.Lines(m.Log.String()) {
		if strings.Contains(line, "what is no MCP message") && strings.Contains(line, `"server":"`+m.server+`"`) {
			said++
		}
	}
	if said != 1 {
		t.Errorf("the log says %d times that there are lines which are no messages", said)
	}
}

func (m *faulty) ignored(t *testing.T) uint64 {
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
func sameProcess(t *testing.T, m *faulty) {
	if started := m.lines(t, "started "); len(started) != 1 {
		t.Errorf("it was started %d times", len(started))
	}
}

// ownAnswers: an answer that comes late is no other call's.
func ownAnswers(t *testing.T, m *faulty) {
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
func askedOnce(t *testing.T, m *faulty) {
	m.expect(t, "bad", answers("bad"))
	if lists := m.lines(t, "tools/list"); len(lists) > 2 {
		t.Errorf("it was asked %d times for its tools", len(lists))
	}
}

// hidden: from the call on that found it out, the tool is neither listed nor called, and never was.
func hidden(t *testing.T, m *faulty) {
	harness.Await(t, "the tool to be hidden", func() bool { return m.answer(t, "bad").code == registry.UnknownTool })
	notCalled(t, m)
}

func notCalled(t *testing.T, m *faulty) {
	if got := m.lines(t, "tools/call bad"); got != nil {
		t.Errorf("it was called: %s", got)
	}
}

func initialisedTwice(t *testing.T, m *faulty) {
	// A server that forgets each session is asked once more when the next call comes.
	if got := m.lines(t, "initialize"); len(got) != 2 && len(got) != 3 {
		t.Errorf("it was initialised %d times", len(got))
	}
}

func noNotifications(t *testing.T, m *faulty) {
	if len(m.heard) > 0 {
		t.Errorf("the client heard %.500s", m.heard)
	}
}

// cappedNotifications: a flood is cut off, in order, and belongs to the client that asked.
func cappedNotifications(t *testing.T, m *faulty) {
	if len(m.heard) == 0 || len(m.heard) > 1000 {
		t.Errorf("the client heard %d notifications", len(m.heard))
	}
	for i, said := range m.heard {
		if want := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"mine","progress":%d}}`, i); said != want {
			t.Fatalf("notification %d is %s, want %s", i, said, want)
		}
	}
	if !strings.Contains(m.Log.String(), `"tool":"`+m.server+`_bad"`) {
		t.Error("the log doesn't say that it dropped some")
	}
}

func grandchildGone(t *testing.T, m *faulty) {
	for _, line := range m.lines(t, "grandchild ") {
		harness.AwaitGone(t, "with its group", pidsIn(t, line))
	}
}
