package daemon

import (
	"bytes"
	"cmp"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
)

// daemonLog is the log of the processes: it keeps the lines that speak of faults, and the address.
type daemonLog struct {
	mu    sync.Mutex
	rest  []byte
	base  string
	lines []string
}

func (c *daemonLog) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rest = append(c.rest, p...)
	for {
		line, rest, whole := bytes.Cut(c.rest, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		c.rest = rest
		var m struct{ Level, Msg, URL string }
		if err := json.Unmarshal(line, &m); (err != nil || m.Level == slog.LevelError.String() && !strings.HasPrefix(m.Msg, "reload refused")) && len(c.lines) < 50 {
			c.lines = append(c.lines, string(line))
		}
		c.base = cmp.Or(c.base, m.URL)
	}
}

func (c *daemonLog) url() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.base
}
