package daemon

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/catalogd/catalogd/test/internal/harness"
)

// soakUpstream makes the test binary the MCP server that the soak's catalog declares.
const soakUpstream = "-soak-upstream"

// echoServer is an MCP server of 2025-06-18 that answers every call with the arguments.
func echoServer(r io.Reader, w io.Writer) {
	for in := bufio.NewScanner(r); in.Scan(); {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ Arguments json.RawMessage }
		}
		if json.Unmarshal(in.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		answer := `"error":{"code":-32601,"message":"method not found"}`
		switch m.Method {
		case "initialize":
			answer = `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"}}`
		case "tools/call":
			answer = fmt.Sprintf(`"result":{"content":[{"type":"text","text":%q}]}`, m.Params.Arguments)
		}
		if _, err := fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`+"\n", m.ID, answer); err != nil {
			return
		}
	}
}

// killedSince reports whether an upstream server was killed in the time of a call or just before: it may have hit the new
// process, too, or the pause before it.
func (s *soak) killedSince(start time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.kills) > 0 && s.kills[len(s.kills)-1].After(start.Add(-2*time.Second))
}

// kill ends one upstream server after the other with SIGKILL, those of the stdio processes included.
func (s *soak) kill(ctx context.Context) {
	for pause(ctx, 5*time.Second) {
		for _, pid := range harness.Children(os.Getpid()) {
			args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			if err != nil || !bytes.Contains(args, []byte(soakUpstream)) {
				continue
			}
			s.mu.Lock()
			s.kills = append(s.kills, time.Now())
			s.mu.Unlock()
			_ = syscall.Kill(pid, syscall.SIGKILL) // or it has just ended
		}
	}
}

// pause sleeps; it returns false when ctx has ended.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// next writes the next version of the tool that changes.
func (s *soak) next() {
	v := s.written.Add(1)
	harness.WriteFile(s, filepath.Join(s.dir, "catalog/live/live.cue"), "package catalog\n\n"+harness.JQTool("live_tool", fmt.Sprintf("Version %d.", v), strconv.FormatInt(v, 10)))
}

// reload has the daemon look at the files, which must be answered with this status.
func (s *soak) reload(want int) {
	resp, err := http.Post(s.url+"/-/reload", "", nil)
	if err != nil {
		s.fail("reload: %v", err)
		return
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != want {
		s.fail("reload: %v, %s, want %d: %s", err, resp.Status, want, body)
	}
	var o struct{ Result string }
	_ = json.Unmarshal(body, &o) // what it is not is counted as ""
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reloads[o.Result]++
}

// edit changes the tool, breaks and fixes files, and takes the tool from a branch by policy and gives it back. What a
// reload has answered holds from then on.
func (s *soak) edit(ctx context.Context) {
	data := filepath.Join(s.dir, harness.AccessFile)
	good := harness.ReadFile(s, data)
	for i := 0; pause(ctx, time.Duration(300+rand.IntN(700))*time.Millisecond); i++ {
		switch i % 4 {
		case 0, 2:
			s.next()
			s.reload(http.StatusOK)
			s.served.Store(s.written.Load())
		case 1:
			s.hides.Add(1)
			s.hiding.Store(true)
			harness.WriteFile(s, data, strings.Replace(good, "default:\n", "default:\n    deny: [live_tool]\n", 1))
			s.reload(http.StatusOK)
			pause(ctx, 300*time.Millisecond)
			harness.WriteFile(s, data, good)
			s.reload(http.StatusOK)
			s.hiding.Store(false)
		case 3:
			name := filepath.Join(s.dir, []string{"catalog/broken.cue", "policy/broken.rego", "policy/broken/data.yaml"}[i/4%3])
			harness.WriteFile(s, name, []string{"package catalog\n\ntools: {", "package broken\n\nx if", "x: ["}[i/4%3])
			s.reload(http.StatusUnprocessableEntity)
			pause(ctx, 300*time.Millisecond)
			if err := os.Remove(name); err != nil {
				s.fail("%v", err)
			}
			s.reload(http.StatusOK)
		}
	}
}

// storm saves a new version and sends SIGHUP 20 times a second.
func (s *soak) storm(ctx context.Context) {
	before := s.metrics()
	signals := 0
	for tick := time.NewTicker(50 * time.Millisecond); ctx.Err() == nil; signals++ {
		s.next()
		if err := s.daemon.Process.Signal(syscall.SIGHUP); err != nil {
			s.fail("%v", err)
		}
		<-tick.C
	}
	after := s.metrics()
	var did []string
	for _, result := range []string{"adopted", "unchanged", "refused"} {
		name := fmt.Sprintf("catalogd_reloads_total{result=%q}", result)
		did = append(did, fmt.Sprintf("%v %s", after[name]-before[name], result))
	}
	s.Logf("%d edits with SIGHUP: %s", signals, strings.Join(did, ", "))
}

// finalEdit checks that after all that the newest files are served to every client.
func (s *soak) finalEdit() {
	s.next()
	s.reload(http.StatusOK)
	want := strconv.FormatInt(s.written.Load(), 10)
	for _, c := range s.clients {
		var got string
		harness.Await(s, "the last version for "+c.name, func() bool { got = c.answer("live_tool", nil); return got == want || c.http })
		if got != want {
			s.Errorf("at the end, the client %s is answered %s, want %s", c.name, got, want)
		}
	}
}

// sendBadRequests is a bad client, which does one thing after the other.
func (s *soak) sendBadRequests(ctx context.Context) {
	bad := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: harness.Timeout}
	for pause(ctx, time.Duration(rand.IntN(100))*time.Millisecond) {
		kind := slices.Sorted(maps.Keys(badRequests))[rand.IntN(len(badRequests))]
		answer := badRequests[kind](ctx, s.url, bad)
		if !strings.Contains(" 400 403 404 405 408 413 415 503 closed ", " "+answer+" ") {
			s.fail("%s was answered %s", kind, answer)
		}
		s.mu.Lock()
		s.badAnswers[kind+": "+answer]++
		s.mu.Unlock()
	}
}

// badRequests are what bad clients do. Each returns the status that it got, or "closed".
var badRequests = map[string]func(ctx context.Context, url string, c *http.Client) string{
	"a slow body": func(ctx context.Context, url string, _ *http.Client) string {
		return speak(url, func(conn net.Conn) {
			fmt.Fprint(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n")
			for range 20 {
				if _, err := conn.Write([]byte(" ")); err != nil || !pause(ctx, 50*time.Millisecond) {
					return
				}
			}
		})
	},
	"noise": func(_ context.Context, url string, _ *http.Client) string {
		return speak(url, func(conn net.Conn) {
			noise := make([]byte, 512)
			for i := range noise {
				noise[i] = byte(rand.Uint32())
			}
			_, _ = conn.Write(append(noise, "\r\n\r\n"...)) // the daemon may hang up
		})
	},
	"broken JSON": func(_ context.Context, url string, c *http.Client) string {
		body := []byte(callBody("convert_temperature"))
		return post(c, url+"/mcp", bytes.NewReader(body[:rand.IntN(len(body))]))
	},
	"a body of 5 MiB": func(_ context.Context, url string, c *http.Client) string {
		return post(c, url+"/mcp", strings.NewReader(strings.Repeat(" ", 5<<20)))
	},
	"a forged session": func(_ context.Context, url string, c *http.Client) string {
		return post(c, url+"/branches/research/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"current_time"}}`),
			"Mcp-Session-Id", fmt.Sprintf("%032x", rand.Uint64()))
	},
	"a foreign origin": func(_ context.Context, url string, c *http.Client) string {
		return post(c, url+"/mcp", strings.NewReader(callBody("slow")), append(callHeader("slow"), "Origin", "http://evil.example.com")...)
	},
	"a call that is dropped": func(ctx context.Context, url string, c *http.Client) string {
		ctx, cancel := context.WithTimeout(ctx, time.Duration(20+rand.IntN(200))*time.Millisecond)
		defer cancel()
		return send(ctx, c, http.MethodPost, url+"/mcp", strings.NewReader(callBody("slow")), callHeader("slow")...)
	},
	"an idle stream": func(ctx context.Context, url string, c *http.Client) string {
		req, err := http.NewRequest(http.MethodPost, url+"/mcp", strings.NewReader(
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"idle","version":"1"}}}`))
		if err != nil {
			return err.Error()
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		resp, err := c.Do(req)
		if err != nil {
			return err.Error()
		}
		resp.Body.Close()
		session := resp.Header.Get("Mcp-Session-Id")
		held, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		answer := send(held, c, http.MethodGet, url+"/mcp", nil, "Mcp-Session-Id", session, "Accept", "text/event-stream")
		if rand.IntN(8) > 0 { // the others are left to be swept
			if got := send(context.Background(), c, http.MethodDelete, url+"/mcp", nil, "Mcp-Session-Id", session); !strings.HasPrefix(got, "20") {
				return got
			}
		}
		return answer
	},
}

// callBody is a call in the modern era, to be sent with callHeader.
func callBody(tool string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{}}}}`, tool, harness.Modern)
}

func callHeader(tool string) []string {
	return []string{"Mcp-Protocol-Version", harness.Modern, "Mcp-Method", "tools/call", "Mcp-Name", tool, "Accept", "application/json, text/event-stream"}
}

func post(c *http.Client, url string, body io.Reader, header ...string) string {
	return send(context.Background(), c, http.MethodPost, url, body, header...)
}

// send sends a request and reads the answer until ctx ends.
func send(ctx context.Context, c *http.Client, method, url string, body io.Reader, header ...string) string {
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return err.Error()
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := c.Do(req)
	if err != nil {
		return "closed"
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return "closed"
	}
	return strconv.Itoa(resp.StatusCode)
}

// speak opens a connection, lets say write to it, and reads the status for a moment.
func speak(url string, say func(net.Conn)) string {
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	say(conn)
	_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond)) // a TCP connection has deadlines
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return "closed"
	}
	defer resp.Body.Close()
	return strconv.Itoa(resp.StatusCode)
}
