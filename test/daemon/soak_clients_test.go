package daemon

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/test/internal/harness"
)

// stdio is a client with a `catalogd stdio` of its own, which reads the same files.
func (s *soak) stdio(binary, era string) *soakClient {
	s.Helper()
	cmd := exec.Command(binary, "stdio", "-C", s.dir, "--format", "json", "--state", filepath.Join(s.TempDir(), "state"))
	cmd.Stderr = s.log
	in, err := cmd.StdinPipe()
	if err != nil {
		s.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = cmd.Process.Kill() }) // or it has ended
	tr := transport.NewIO(out, in, io.NopCloser(strings.NewReader("")))
	c := &soakClient{Client: client.NewClient(tr, client.WithProtocolVersion(era)), name: era + " on stdio", branch: "default", process: cmd}
	if err := c.Start(context.Background()); err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(s.Context(), harness.Timeout)
	defer cancel()
	_, err = c.Initialize(ctx, mcp.InitializeRequest{Params: mcp.InitializeParams{
		ProtocolVersion: era, ClientInfo: mcp.Implementation{Name: "soak", Version: "1"},
	}})
	if err != nil {
		s.Fatalf("%s: initialize: %v", c.name, err)
	}
	return c
}

// soakClient is a client that does everything right.
type soakClient struct {
	*client.Client
	name, branch string
	http         bool      // it is served by the daemon, whose reloads are confirmed
	process      *exec.Cmd // or by this process
}

// What good clients call.
const (
	jqCall, execCall, httpCall, upstreamCall, liveCall, listCall = "jq", "exec", "http", "upstream", "live", "list"
)

// phase lets every good client call for d, while each disturbance goes on, and returns how long the calls took by kind.
func (s *soak) phase(name string, d time.Duration, disturbances ...func(context.Context)) map[string][]time.Duration {
	ctx, cancel := context.WithTimeout(s.Context(), d)
	defer cancel()
	var all sync.WaitGroup
	took := make([]map[string][]time.Duration, len(s.clients))
	for i, c := range s.clients {
		all.Go(func() { took[i] = s.callAll(ctx, c) })
	}
	for _, disturb := range disturbances {
		all.Go(func() { disturb(ctx) })
	}
	all.Go(func() { s.watch(ctx) })
	all.Wait()
	total := map[string][]time.Duration{}
	for _, one := range took {
		for kind, durations := range one {
			total[kind] = append(total[kind], durations...)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(total)) {
		s.Logf("%-5s %-8s %6d calls, median %8v, p99 %8v, most %8v", name, kind, len(total[kind]),
			percentile(total[kind], 50), percentile(total[kind], 99), percentile(total[kind], 100))
	}
	return total
}

func percentile(all []time.Duration, p int) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[(len(all)-1)*p/100].Round(10 * time.Microsecond)
}

// callAll calls one tool after the other until ctx ends. Its last call is let finish.
func (s *soak) callAll(ctx context.Context, c *soakClient) map[string][]time.Duration {
	took := map[string][]time.Duration{}
	for ; ctx.Err() == nil; time.Sleep(time.Duration(rand.IntN(40)) * time.Millisecond) {
		kind := []string{jqCall, jqCall, jqCall, execCall, httpCall, upstreamCall, liveCall, liveCall, listCall}[rand.IntN(9)]
		word := strconv.Itoa(rand.IntN(1e6))
		served, hides, hiding := s.served.Load(), s.hides.Load(), s.hiding.Load()
		start := time.Now()
		var got string
		explained := true
		switch kind {
		case jqCall:
			got = c.answer("convert_temperature", map[string]any{"value": 212, "from": "fahrenheit"})
			explained = strings.Contains(got, `"value":100`)
		case execCall:
			got = c.answer("current_time", nil)
			_, err := time.Parse(time.RFC3339, strings.TrimSpace(got))
			explained = err == nil
		case httpCall:
			got = c.answer("item", map[string]any{"id": word})
			explained = got == "/items/"+word
		case upstreamCall:
			got = c.answer("soak_echo", map[string]any{"message": word})
			explained = got == fmt.Sprintf(`{"message":%q}`, word) || strings.HasPrefix(got, "failed: ") && s.killedSince(start)
		case liveCall:
			got = c.answer("live_tool", nil)
			version, err := strconv.ParseInt(got, 10, 64)
			explained = err == nil && version <= s.written.Load() && (version >= served || !c.http) ||
				got == harness.Absent && c.branch == "default" && (hiding || s.hiding.Load() || s.hides.Load() > hides || !c.http && hides > 0)
		case listCall:
			result, err := c.ListTools(context.Background(), mcp.ListToolsRequest{})
			explained = err == nil && slices.ContainsFunc(result.Tools, func(t mcp.Tool) bool { return t.Name == "current_time" })
			got = fmt.Sprint(result, err)
		}
		took[kind] = append(took[kind], time.Since(start))
		if !s.long && strings.Contains(got, "(policy_timeout)") {
			s.late.Add(1) // a policy that had no time to answer denies, and a busy machine has none
			continue
		}
		if !explained {
			s.fail("%s: the %s call of the client %s, begun %v ago with version %d served, answered %s, which nothing explains",
				time.Now().Format(time.StampMilli), kind, c.name, time.Since(start), served, got)
		}
	}
	return took
}

func (c *soakClient) answer(tool string, args any) string {
	ctx, cancel := context.WithTimeout(context.Background(), harness.Timeout)
	defer cancel()
	return (&harness.Client{Client: c.Client}).Answer(ctx, tool, args)
}
