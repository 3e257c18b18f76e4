package servetest

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/catalogd/catalogd/decision"
)

type Blocked struct{}

func (Blocked) Read([]byte) (int, error) { select {} }

// Eventually waits for a condition.
func Eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// Pipe is a client of Stdio that writes and reads lines.
type Pipe struct {
	In    *io.PipeWriter
	Lines chan string
	Ended chan error
}

func Attach(t testing.TB, d *Server, branch string) *Pipe {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	p := &Pipe{In: toServer, Lines: make(chan string, 1000), Ended: make(chan error, 1)}
	go func() {
		p.Ended <- d.Stdio(context.Background(), branch, in, out)
		out.Close()
	}()
	go func() {
		defer close(p.Lines)
		r := bufio.NewReader(fromServer)
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			p.Lines <- strings.TrimSpace(line)
		}
	}()
	t.Cleanup(func() { p.In.Close() })
	return p
}

func (p *Pipe) Send(t testing.TB, lines ...string) {
	t.Helper()
	for _, l := range lines {
		if _, err := io.WriteString(p.In, strings.TrimSuffix(l, "\n")+"\n"); err != nil {
			t.Fatal(err)
		}
	}
}

func (p *Pipe) Next(t testing.TB) string {
	t.Helper()
	select {
	case line, ok := <-p.Lines:
		if !ok {
			t.Fatal("stdout ended")
		}
		return line
	case <-time.After(2 * time.Minute):
		t.Fatal("no line")
		return ""
	}
}

// StaffOnly hides what is internal from everyone but staff.
const StaffOnly = `package catalogd.list

deny contains "for staff" if {
	"internal" in input.tool.tags
	not "staff" in input.principal.groups
}
`

func Person(name string, groups ...string) decision.Principal {
	if groups == nil {
		groups = []string{}
	}
	return decision.Principal{Name: name, Groups: groups}
}
