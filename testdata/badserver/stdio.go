package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// child is the server on standard streams.
type child struct {
	fault, journal string
	in             *bufio.Reader
	choir          *choir
	// cancelled are the ids of calls that were given up.
	cancelled []string
}

func (c *child) line(s string) {
	if _, err := os.Stdout.WriteString(s + "\n"); err != nil {
		os.Exit(0) // nobody reads any more
	}
}

func (c *child) answer(id json.RawMessage, result string) { c.line(response(id, result)) }

// next is the next message; the process ends with its standard input.
func (c *child) next() request {
	line, err := c.in.ReadBytes('\n')
	if err == io.EOF {
		os.Exit(0)
	}
	must(err)
	var r request
	must(json.Unmarshal(line, &r))
	came(c.journal, r)
	if c.fault == "records" {
		note(c.journal, "%s", line[:len(line)-1])
	}
	if r.Method == "notifications/cancelled" {
		c.cancelled = append(c.cancelled, string(r.Params.RequestID))
	}
	return r
}

func (c *child) serve() {
	note(c.journal, "started %d", os.Getpid())
	switch c.fault {
	case "usage":
		fmt.Fprintln(os.Stderr, "usage: server [flags]\nthe flag -x is not known")
		os.Exit(2)
	case "usage-on-stdout":
		fmt.Println("usage: server [flags]")
		os.Exit(0)
	case "mute":
		forever()
	case "killed-at-start":
		must(syscall.Kill(os.Getpid(), syscall.SIGKILL))
	}
	c.in = bufio.NewReader(os.Stdin)
	for {
		c.take(c.next())
	}
}

func (c *child) take(r request) {
	switch {
	case r.Method == "server/discover" && c.fault == "exit-at-discover":
		os.Exit(1)
	case r.Method == "server/discover":
		c.line(refusal(r.ID, -32601, "Method not found"))
	case r.Method == "initialize":
		c.initialize(r)
	case r.Method == "tools/list" && c.fault == "mute-at-list":
	case r.Method == "tools/list" && c.fault == "no-list":
		c.line(refusal(r.ID, -32601, "Method not found"))
	case r.Method == "tools/list":
		c.answer(r.ID, listing(c.fault, r.Params.Cursor))
	case r.Method == "tools/call" && r.Params.Name == "says":
		go c.choir.says(r, false, c.line)
	case r.bad():
		c.misbehave(r)
	case r.Method == "tools/call":
		c.answer(r.ID, text("good"+string(r.Params.Arguments)))
	}
}

func (c *child) initialize(r request) {
	switch c.fault {
	case "exit-at-initialize":
		fmt.Fprintln(os.Stderr, "no license found")
		os.Exit(3)
	case "mute-at-initialize":
		return
	case "refuses-initialize":
		c.line(refusal(r.ID, -32000, "go away"))
		return
	case "talks-first": // as a program does that says hello
		c.line("bad server 1.0\n\nlistening on stdio\x1b[0m")
	}
	c.answer(r.ID, greeting(c.fault))
}

// misbehave is a call of the tool bad. A fault that is not about calls makes it a good one.
func (c *child) misbehave(r request) {
	if result, ok := wrongResults[c.fault]; ok {
		c.answer(r.ID, result)
		return
	}
	id := string(r.ID)
	switch c.fault {
	case "crash":
		fmt.Fprintln(os.Stderr, "fatal: out of luck")
		os.Exit(3)
	case "killed":
		must(syscall.Kill(os.Getpid(), syscall.SIGKILL))
	case "hang":
	case "exit-after-answer":
		c.answer(r.ID, text("bad"))
		os.Exit(0)
	case "closes-stdout":
		os.Stdout.Close()
		forever()
	case "deaf":
		forever()
	case "late", "late-as-another": // answers once the call is given up
		for !slices.Contains(c.cancelled, id) {
			c.next()
		}
		c.answer(r.ID, text("late"))
		if c.fault == "late" {
			return
		}
		next := c.next() // and again while the next one waits
		c.answer(r.ID, text("late"))
		c.take(next)
	case "huge":
		if err := huge(write, r.ID, 64); err == nil {
			c.line("")
		}
	case "endless-line":
		chunk := []byte(strings.Repeat("x", 1<<20))
		for write(chunk) == nil {
		}
	case "many-blocks":
		c.answer(r.ID, manyBlocks())
	case "drip": // a byte at a time, until the call is given up
		end := make(chan struct{})
		go func() {
			for !slices.Contains(c.cancelled, id) {
				c.next()
			}
			close(end)
		}()
		for _, b := range []byte(response(r.ID, text(strings.Repeat("x", 1<<20)))) {
			select {
			case <-end:
				c.line("")
				return
			case <-time.After(5 * time.Millisecond):
				must(write([]byte{b}))
			}
		}
	case "log-on-stdout":
		c.line("INFO handling tools/call\n\ttook 3 ms")
		c.answer(r.ID, text("bad"))
	case "bom":
		c.line("\xef\xbb\xbf" + response(r.ID, text("bad")))
	case "two-on-a-line":
		c.line(response(r.ID, text("first")) + response(r.ID, text("second")))
		c.answer(r.ID, text("bad"))
	case "no-json":
		c.line(`{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[`)
		c.line(`{'jsonrpc': '2.0', 'id': ` + id + `, 'result': {}}`)
		c.answer(r.ID, text("bad"))
	case "strays": // more than are put up with
		for range 11_000 {
			c.line("DEBUG still handling tools/call")
		}
		c.answer(r.ID, text("bad"))
	case "id-as-text":
		c.line(response(json.RawMessage(`"`+id+`"`), text("bad")))
	case "id-twice":
		c.answer(r.ID, text("bad"))
		c.answer(r.ID, text("twice"))
	case "unknown-id":
		c.answer(json.RawMessage(`777777`), text("of nobody"))
		c.line(response(json.RawMessage(`null`), text("of nobody")))
		c.answer(r.ID, text("bad"))
	case "result-and-error":
		c.line(`{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[]},"error":{"code":1,"message":"both"}}`)
	case "neither":
		c.line(`{"jsonrpc":"2.0","id":` + id + `}`)
	case "asks":
		var answers []string
		for _, q := range questions() {
			c.line(q)
			line, err := c.in.ReadBytes('\n')
			must(err)
			answers = append(answers, string(line[:len(line)-1]))
		}
		c.answer(r.ID, text(strings.Join(answers, "\n")))
	case "progress-flood":
		for i := range 10_000 {
			c.line(progress(r.Params.Meta.Token, i))
		}
		c.answer(r.ID, text("bad"))
	case "foreign-progress":
		for _, token := range []string{"1", "999999", `"x"`, "null", "{}"} {
			c.line(progress(json.RawMessage(token), 1))
		}
		c.answer(r.ID, text("bad"))
	case "log-flood":
		for i := range 10_000 {
			c.line(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":%d}}`, i))
		}
		c.answer(r.ID, text("bad"))
	case "stderr-flood":
		_, err := os.Stderr.WriteString(strings.Repeat("noise\n", 1<<20))
		must(err)
		c.answer(r.ID, text("bad"))
	case "list-changed-storm":
		for range 1000 {
			c.line(listChanged)
		}
		c.answer(r.ID, text("bad"))
	case "grandchild": // which holds the streams when this process is gone
		self, err := os.Executable()
		must(err)
		cmd := exec.Command(self, "sleep")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		must(cmd.Start())
		note(c.journal, "grandchild %d", cmd.Process.Pid)
		os.Exit(4)
	default:
		c.answer(r.ID, text("bad"))
	}
}

func write(b []byte) error {
	_, err := os.Stdout.Write(b)
	return err
}

// forever blocks; a bare select would end a program that does nothing else.
func forever() { time.Sleep(24 * time.Hour) }
