package upstream_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/upstream"
	"github.com/catalogd/catalogd/registry"
)

// spoiled is an HTTP server that negotiates properly and answers calls with bytes of its own, under which the client's HTTP
// has to cope as well. A call whose arguments ask for nothing is answered well.
func spoiled(t *testing.T) registry.Server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // the test has ended
			}
			go spoil(conn)
		}
	}()
	s := declared("http://" + l.Addr().String() + "/mcp")
	s.MaxConnections = 16 // a stream that is to be resumed waits a second
	return s
}

func spoil(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		req, err := http.ReadRequest(in)
		if err != nil {
			return // the client has gone
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		var m request
		_ = json.Unmarshal(body, &m) // the end of a session has no body
		var asked struct{ Seed uint64 }
		_ = json.Unmarshal(m.Params.Arguments, &asked) // or it has no arguments
		answer := func(status, kind, body string) string {
			return fmt.Sprintf("HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nMcp-Session-Id: one\r\n\r\n%s", status, kind, len(body), body)
		}
		message := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, `{"content":[{"type":"text","text":"ok"}]}`)
		out := ""
		switch {
		case m.Method == "server/discover":
			out = answer("400 Bad Request", "text/plain", "unknown")
		case m.Method == "initialize":
			out = answer("200 OK", "application/json", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}`, m.ID))
		case m.Method != "tools/call":
			out = answer("202 Accepted", "text/plain", "")
		case asked.Seed == 0:
			out = answer("200 OK", "application/json", message)
		default:
			r := rand.New(rand.NewPCG(asked.Seed, 3))
			whole := []string{
				answer("200 OK", "application/json", message),
				answer("200 OK", "text/event-stream", "id: 1\ndata: "+`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":`+string(m.ID)+`,"progress":1}}`+"\n\nevent: message\ndata: "+message+"\n\n"),
				"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(message), message),
				answer("400 Bad Request", "application/json", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"no"}}`, m.ID)),
			}[r.IntN(4)]
			_, _ = io.WriteString(conn, mutate(r, whole)) // the client may have gone
			return
		}
		if _, err := io.WriteString(conn, out); err != nil {
			return
		}
	}
}

// mutate spoils s in one to three places, of its headers one time in five.
func mutate(r *rand.Rand, s string) string {
	b := []byte(s)
	for range 1 + r.IntN(3) {
		head := 0
		if end := strings.Index(s, "\r\n\r\n"); end >= 0 && r.IntN(5) > 0 {
			head = min(end+4, len(b))
		}
		i := head + r.IntN(len(b)-head+1)
		j := min(len(b), i+r.IntN(12))
		switch r.IntN(7) {
		case 0: // taken out
			b = append(b[:i:i], b[j:]...)
		case 1: // said twice
			b = append(b[:j:j], append(append([]byte{}, b[i:j]...), b[j:]...)...)
		case 2: // another byte
			if i < len(b) {
				b[i] = byte(r.IntN(256))
			}
		case 3: // put in
			words := []string{"\x00", "\xff\xfe", "\"", "{", "}", "[", "]", "null", ",", "\r\n", "\n\n", "data: ", "-1", "1e999", "\\ud800", "\ufeff", ":", "id: \n", "retry: -1\n", "HTTP/1.1 100 Continue\r\n\r\n"}
			b = append(b[:i:i], append([]byte(words[r.IntN(len(words))]), b[i:]...)...)
		case 4: // cut off
			b = b[:i]
		case 5: // two pieces swapped
			k := min(len(b), j+r.IntN(12))
			b = append(append(append(append([]byte{}, b[:i]...), b[j:k]...), b[i:j]...), b[k:]...)
		case 6: // letters of the other case
			copy(b[i:j], strings.ToUpper(string(b[i:j])))
		}
		if len(b) == 0 {
			break
		}
	}
	return string(b)
}

// Whatever bytes a server answers with, a call ends in time, in a result that is one or an error with a code, and the next
// call is answered.
func TestSpoiledAnswers(t *testing.T) {
	t.Parallel()
	// Nothing but the server's answers stands between one call and the next.
	pool := upstream.NewPool(upstream.Config{Backoff: time.Nanosecond, MaxBackoff: time.Nanosecond, BreakAfter: 1 << 30})
	t.Cleanup(pool.Close)
	root := t.TempDir()
	set := pool.Open(root, []upstream.Upstream{trusted(t, spoiled(t), root, loopback)})
	seeds := uint64(400)
	if testing.Short() {
		seeds = 40
	}
	var callers sync.WaitGroup
	var good atomic.Int64
	for c := range uint64(16) {
		callers.Go(func() {
			for seed := c + 1; seed <= seeds; seed += 16 {
				r, err := set.Call(t.Context(), "fake", "echo", json.RawMessage(fmt.Sprintf(`{"Seed":%d}`, seed)), registry.Listener{Progress: func(params json.RawMessage) {
					if !json.Valid(params) || !utf8.Valid(params) {
						t.Errorf("seed %d: the client hears %q", seed, params)
					}
				}})
				if whole(t, seed, r, err) {
					good.Add(1)
				}
			}
		})
	}
	callers.Wait()
	t.Logf("%d of %d answers were good in spite of all", good.Load(), seeds)
	eventually(t, "a good answer", func() bool {
		r, err := call(t, set, "echo", `{}`)
		return err == nil && string(r.Content[0]) == `{"type":"text","text":"ok"}`
	})
}

// whole reports whether a call had a result, and holds it, or the error, to being one.
func whole(t *testing.T, seed uint64, r *registry.Result, err error) bool {
	t.Helper()
	var e *registry.Error
	switch {
	case err == nil:
		for _, block := range append(r.Content, orNull(r.Structured), orNull(r.Meta)) {
			if !json.Valid(block) || !utf8.Valid(block) {
				t.Errorf("seed %d: %q", seed, block)
			}
		}
	case !errors.As(err, &e) || e.Code == "" || e.Code == registry.Internal:
		t.Errorf("seed %d: %v", seed, err)
	case !utf8.ValidString(e.Msg):
		t.Errorf("seed %d: %q", seed, e.Msg)
	}
	return err == nil
}

// Whatever a child writes before its answer, the call is answered, by that or by what was meant as an answer before, and the
// process is kept.
func TestSpoiledLines(t *testing.T) {
	t.Parallel()
	_, set := open(t, stdioServer(t, "good"), trust.Terms{})
	pid := text(t, set, "pid", `{}`)
	good := 0
	const seeds = 3000
	for seed := range uint64(seeds) {
		r, err := set.Call(t.Context(), "fake", "spoiled", json.RawMessage(fmt.Sprintf(`{"Seed":%d}`, seed)), registry.Listener{Progress: func(params json.RawMessage) {
			if !json.Valid(params) || !utf8.Valid(params) {
				t.Errorf("seed %d: the client hears %q", seed, params)
			}
		}})
		if whole(t, seed, r, err) {
			good++
		} else if code := err.(*registry.Error).Code; code != registry.ResultInvalid && code != registry.BindingFailed {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
	t.Logf("%d of %d calls had a result", good, seeds)
	if text(t, set, "pid", `{}`) != pid {
		t.Error("the connection was lost")
	}
}

func orNull(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("null")
	}
	return raw
}
