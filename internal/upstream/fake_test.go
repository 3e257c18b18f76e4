package upstream_test

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestMain is also the server that the tests call: the test binary with -fake and what it does wrong.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "-growing" {
		serveGrowing()
		os.Exit(0)
	}
	if len(os.Args) > 2 && os.Args[1] == "-fake" {
		fake{out: os.Stdout}.run(os.Args[2:])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// fake is an MCP server of 2025-06-18 that misbehaves on demand: as a whole by its first argument, or in one call by the
// tool's name.
type fake struct{ out io.Writer }

// changes counts what a server in the mode floods-changes has said.
var changes atomic.Int64

type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		RequestID json.RawMessage `json:"requestId"`
		Meta      struct {
			Token json.RawMessage `json:"progressToken"`
			traceMeta
		} `json:"_meta"`
	} `json:"params"`
	Error json.RawMessage `json:"error"`
}

func (f fake) run(args []string) {
	switch args[0] {
	case "usage":
		fmt.Fprintln(os.Stderr, "usage: fake [flags]\nfake: the flag -x is unknown")
		os.Exit(2)
	case "usage-stdout":
		fmt.Println("usage: fake [flags]")
		os.Exit(0)
	case "mute":
		time.Sleep(time.Hour)
	case "stubborn":
		// Nothing but SIGKILL ends it.
		ignoreSignals()
		go func() { time.Sleep(time.Hour) }()
	case "sleeper":
		time.Sleep(time.Hour)
	case "floods-changes": // without end
		go func() {
			for ; ; changes.Add(1) {
				f.line(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
			}
		}()
	case "answers-first": // results of another kind, before anything is asked
		for id := range 1200 {
			f.result(json.RawMessage(strconv.Itoa(id)), `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"content":[]}`)
		}
	}
	var cancelled, hung []string
	var held json.RawMessage
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			if args[0] == "stubborn" {
				time.Sleep(time.Hour)
			}
			return
		}
		var req request
		if err := json.Unmarshal(line, &req); err != nil {
			fmt.Fprintln(os.Stderr, "fake: not JSON:", err)
			os.Exit(9)
		}
		if len(args) > 1 {
			note(args[1], req.Method)
		}
		switch req.Method {
		case "initialize":
			if args[0] == "starts-slowly" { // of 2026-07-28 alone: it answers only now what it was asked first
				f.result(held, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"serverInfo":{"name":"fake","version":"1"}}`)
				f.line(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`, req.ID))
				continue
			}
			if args[0] == "tells-at-handshake" {
				f.line(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"bad key %s"}}`, req.ID, os.Getenv("KEY")))
				continue
			}
			f.result(req.ID, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"fake","version":"1"}}`)
		case "server/discover":
			switch args[0] {
			case "modern":
				f.result(req.ID, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"serverInfo":{"name":"fake","version":"1"}}`)
			case "initialize-first":
				fmt.Fprintln(os.Stderr, "fake: expected initialize")
				os.Exit(1)
			case "ignores-discover":
			case "starts-slowly":
				held = req.ID
			default:
				f.line(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`, req.ID))
			}
		case "tools/list":
			f.result(req.ID, `{"tools":[{"name":"changes","inputSchema":{"type":"object"}}]}`)
		case "notifications/cancelled":
			cancelled = append(cancelled, string(req.Params.RequestID))
		case "tools/call":
			if req.Params.Name == "hang" {
				hung = append(hung, string(req.ID))
			}
			f.call(req, in, cancelled, hung)
		}
	}
}

// note appends the method of a message to a file, before it is answered.
func note(file, method string) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(f, method)
	f.Close()
}

func (f fake) call(req request, in *bufio.Reader, cancelled, hung []string) {
	switch req.Params.Name {
	case "echo":
		f.text(req.ID, string(req.Params.Arguments))
	case "changes": // how often it has said that its tools changed
		f.text(req.ID, fmt.Sprint(changes.Load()))
	case "pid":
		f.text(req.ID, fmt.Sprint(os.Getpid()))
	case "parent":
		f.text(req.ID, req.Params.Meta.String())
	case "env":
		f.text(req.ID, strings.Join(os.Environ(), "\n"))
	case "env-hidden": // as a server that hides what it says: no encoding that a mask knows
		env := []byte(strings.Join(os.Environ(), "\n"))
		for i := range env {
			env[i] ^= 0x80
		}
		f.text(req.ID, hex.EncodeToString(env))
	case "result": // answers with its arguments as the result, byte for byte
		f.result(req.ID, string(req.Params.Arguments))
	case "line": // writes a line of its own choice
		var a struct{ Line string }
		if err := json.Unmarshal(req.Params.Arguments, &a); err != nil {
			panic(err)
		}
		f.line(strings.ReplaceAll(a.Line, "ID", string(req.ID)))
	case "latin1":
		f.result(req.ID, "{\"content\":[{\"type\":\"text\",\"text\":\"caf\xe9\"}]}")
	case "refuse":
		f.line(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"Tool refuse not found"}}`, req.ID))
	case "hang": // says so by making a file
		var a struct{ File string }
		if err := json.Unmarshal(req.Params.Arguments, &a); err != nil {
			panic(err)
		}
		if a.File != "" {
			if err := os.WriteFile(a.File, nil, 0o600); err != nil {
				panic(err)
			}
		}
	case "wait": // until the file exists
		var a struct{ File string }
		if err := json.Unmarshal(req.Params.Arguments, &a); err != nil {
			panic(err)
		}
		for {
			if _, err := os.Stat(a.File); err == nil {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		f.text(req.ID, "waited")
	case "cancelled": // in any order: a cancellation goes out beside the return of its call
		f.text(req.ID, fmt.Sprint(len(hung), slices.Equal(slices.Sorted(slices.Values(cancelled)), slices.Sorted(slices.Values(hung)))))
	case "crash":
		fmt.Fprintf(os.Stderr, "fake: panic with %s\n", os.Getenv("TOKEN"))
		os.Exit(3)
	case "crash-after":
		f.text(req.ID, "done")
		os.Exit(0)
	case "stray":
		f.line("listening...\n\n\xef\xbb\xbf[1,2]\n{\"not\": finished\n{} {}")
		f.line(`{"jsonrpc":"2.0","id":"` + string(req.ID) + `","result":{"content":[]}}`)
		f.line(`{"jsonrpc":"2.0","id":999999,"result":{"content":[]}}`)
		f.line(`{"jsonrpc":"2.0","id":null,"result":{"content":[]}}`)
		f.line(`{"jsonrpc":"2.0","id":` + string(req.ID) + `,"result":{"content":[]},"error":{"code":1,"message":"both"}}`)
		f.line(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`)
		f.line("\xef\xbb\xbf" + `{"jsonrpc":"2.0","id":` + string(req.ID) + `,"result":{"content":[{"type":"text","text":"at last"}]}}`)
		f.text(req.ID, "twice")
	case "flood":
		chunk := bytes.Repeat([]byte("x"), 1<<20)
		fmt.Fprintf(f.out, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"`, req.ID)
		for range 64 {
			f.out.Write(chunk)
		}
		f.line(`"}]}}`)
	case "write_stderr": // writes a text of its own choice
		writeStderr(req.Params.Arguments)
		f.text(req.ID, "written")
	case "stderr":
		os.Stderr.Write(bytes.Repeat([]byte("noise\n"), 1<<20))
		f.text(req.ID, "still here")
	case "grandchild":
		self, err := os.Executable()
		if err != nil {
			panic(err)
		}
		cmd := exec.Command(self, "-fake", "sleeper", fmt.Sprint(os.Getppid()))
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Start(); err != nil {
			panic(err)
		}
		f.text(req.ID, fmt.Sprint(cmd.Process.Pid))
	case "ask":
		f.line(`{"jsonrpc":"2.0","id":"q","method":"` + "sampling/createMessage" + `","params":{"messages":[],"maxTokens":1}}`)
		line, err := in.ReadBytes('\n')
		if err != nil {
			panic(err)
		}
		f.text(req.ID, string(line))
	case "says": // three times, then answers at once, then once more; and what is no notification
		if req.Params.Meta.Token == nil {
			req.Params.Meta.Token = json.RawMessage("0")
		}
		for i := range 3 {
			f.line(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"message":"of %s"}}`, req.Params.Meta.Token, i, req.ID))
		}
		for _, params := range []string{`{"progress":1}`, `{"progressToken":null,"progress":1}`, `{"progressToken":` + string(req.Params.Meta.Token) + `}`,
			`{"progressToken":` + string(req.Params.Meta.Token) + `,"progress":"1"}`, `{"progressToken":1,"progress":1}`, `[]`, "{\"progressToken\":1,\"message\":\"\xff\"}"} {
			f.line(`{"jsonrpc":"2.0","method":"notifications/progress","params":` + params + `}`)
		}
		f.line(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","data":{"a":[1,9007199254740993]}}}`)
		f.line(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"debug","data":1}}`)
		f.line(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"grim","data":1}}`)
		f.line(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		f.text(req.ID, string(req.ID))
		f.line(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":9}}`, req.Params.Meta.Token))
	case "spoiled": // writes what was an answer, and then an answer
		var a struct{ Seed uint64 }
		if err := json.Unmarshal(req.Params.Arguments, &a); err != nil {
			panic(err)
		}
		r := rand.New(rand.NewPCG(a.Seed, 1))
		whole := []string{
			`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"ok"}],"structuredContent":{"a":1},"_meta":{"b":1.0}}}`,
			`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"no"}}`,
			`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1,"message":"é"}}`,
			`{"jsonrpc":"2.0","id":%s,"method":"sampling/createMessage","params":{"messages":[]}}`,
		}[r.IntN(4)]
		f.line(mutate(r, fmt.Sprintf(whole, req.ID)))
		f.text(req.ID, "ok")
	case "deaf": // answers, and reads nothing more
		f.text(req.ID, "deaf")
		time.Sleep(time.Hour)
	}
}

func (f fake) line(s string) { fmt.Fprintf(f.out, "%s\n", s) }

func (f fake) result(id json.RawMessage, result string) {
	f.line(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result))
}

func (f fake) text(id json.RawMessage, text string) {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	f.result(id, `{"content":[{"type":"text","text":`+string(b)+`}]}`)
}

// children are the processes below this one, by pid, zombies left out.
func children(t *testing.T) []int {
	t.Helper()
	ps := exec.Command("ps", "-e", "-o", "pid=,ppid=,stat=")
	out, err := ps.Output()
	if err != nil {
		t.Fatal(err)
	}
	parents := map[int]int{}
	for line := range strings.Lines(string(out)) {
		var pid, ppid int
		var stat string
		if _, err := fmt.Sscan(line, &pid, &ppid, &stat); err == nil && !strings.HasPrefix(stat, "Z") {
			parents[pid] = ppid
		}
	}
	var below []int
	delete(parents, ps.Process.Pid)
	for pid := range parents {
		for p := parents[pid]; p > 1; p = parents[p] {
			if p == os.Getpid() {
				below = append(below, pid)
				break
			}
		}
	}
	slices.Sort(below)
	return below
}
