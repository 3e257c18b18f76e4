package mcpserver

import (
	"fmt"
	"time"

	"github.com/catalogd/catalogd/internal/token"
)

// Bearers counts what is kept for bearers of tokens: one for each branch that each has open.
func (s *Server) Bearers() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at := range s.branches {
		if at.caller != (token.Hash{}) {
			n++
		}
	}
	return n
}

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

// Defaults are the rows of limits as docs/mcp.md has them.
func Defaults() []string {
	l := Limits{}.withDefaults()
	thousands := func(n int) string {
		if n < 1000 {
			return fmt.Sprint(n)
		}
		return fmt.Sprintf("%d,%03d", n/1000, n%1000)
	}
	return []string{
		fmt.Sprintf("| one message | %d MiB, %d levels |", maxMessage>>20, maxDepth),
		fmt.Sprintf("| headers | %d KiB, %.0f s |", MaxHeaderBytes>>10, l.HeaderTime.Seconds()),
		fmt.Sprintf("| a body | %.0f s |", l.BodyTime.Seconds()),
		fmt.Sprintf("| connections | %s; %.0f min idle |", thousands(l.Conns), l.IdleTime.Minutes()),
		fmt.Sprintf("| sessions of a branch | %s; %.0f h idle |", thousands(l.Sessions), l.SessionIdle.Hours()),
		fmt.Sprintf("| sessions of all branches together | %s |", thousands(l.AllSessions)),
		fmt.Sprintf("| streams of a branch | %s |", thousands(l.Streams)),
		fmt.Sprintf("| calls of a branch, a principal, a tool | %d, %d, %d at once; %d more wait for up to %.0f s ([", l.Calls, l.CallsPerPrincipal, l.CallsPerTool, l.Queue, l.QueueWait.Seconds()),
		fmt.Sprintf("| one write to a client | %.0f s |", l.WriteTime.Seconds()),
		fmt.Sprintf("at most %s notifications and %d KiB", thousands(maxNotices), maxNoticeBytes>>10),
		fmt.Sprintf("nothing was said for %.0f s", l.Heartbeat.Seconds()),
		fmt.Sprintf("gives calls %.0f s to finish", l.Drain.Seconds()),
	}
}

// States is a branch's seal, for tests that set the time.
type States struct{ s *seal }

// StateSubject is what a state is good for.
type StateSubject struct{ Branch, Principal, Tool, Dialect, Arguments string }

func NewStates(now func() time.Time) States { return States{newSeal(now)} }

// NewSharedStates is the seal of a branch for the operator in a process with a key.
func NewSharedStates(key []byte, branch string) States {
	return States{(&Server{Config: Config{StateKey: key}}).newSeal(branch, token.Caller{})}
}

func (o StateSubject) subject() subject {
	return subject{o.Branch, o.Principal, o.Tool, o.Dialect, digest([]byte(o.Arguments))}
}

func (s States) Close(of StateSubject, remembered string) string {
	state, _ := s.s.close(of.subject(), []byte(remembered))
	return state
}

func (s States) Open(of StateSubject, state string) (string, error) {
	body, _, err := s.s.open(of.subject(), state)
	return string(body), err
}
