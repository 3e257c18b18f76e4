package upstream

import (
	"bytes"
	"log/slog"
	"strings"
	"time"

	"golang.org/x/time/rate"
)

const (
	// heldLine is how much of one line of standard error is looked at, shownLine how much is logged.
	heldLine, shownLine = 16 << 10, 1 << 10
	// shownAll is how much of one process's standard error is logged at most.
	shownAll = 4 << 20
	// shownRate and shownBurst bound the lines logged in a second, and at once.
	shownRate, shownBurst = 10, 200
)

// murmur takes a child's standard error to the log, a line at a time, as it comes. Secrets are masked, control characters
// quoted, and what is too much is left out and counted: a child can't fill the log, or forge a line of it. It never
// fails and doesn't wait, so that the child isn't held up. Write and end are not for concurrent use.
type murmur struct {
	log     *slog.Logger
	private *strings.Replacer
	line    []byte
	cut     bool // the line is longer than what is held of it
	rate    *rate.Limiter
	left    int // bytes that may still be logged; below 0 once that was said
	missed  int // lines left out since the last one logged
}

func newMurmur(log *slog.Logger, private *strings.Replacer) *murmur {
	return &murmur{log: log, private: private, rate: rate.NewLimiter(shownRate, shownBurst), left: shownAll}
}

func (m *murmur) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		line, after, ended := bytes.Cut(rest, []byte("\n"))
		held := min(len(line), heldLine-len(m.line))
		m.line, m.cut = append(m.line, line[:held]...), m.cut || held < len(line)
		if ended {
			m.say()
		}
		rest = after
	}
	return len(b), nil
}

// end says what has no end of line, and what was left out last.
func (m *murmur) end() {
	m.say()
	m.mention()
}

// say logs the line that is there.
func (m *murmur) say() {
	text := m.private.Replace(strings.ToValidUTF8(string(m.line), "\uFFFD"))
	if m.cut { // its end may be the beginning of a secret
		text = text[:max(0, len(text)-heldLine/2)] + "..."
	}
	text = clip(text, shownLine)
	m.line, m.cut = m.line[:0], false
	switch {
	case text == "" || m.left < 0:
	case len(text) > m.left:
		m.left = -1
		m.log.Warn("upstream writes too much to standard error; nothing more of this process is logged", "bytes", shownAll)
	case !m.rate.AllowN(time.Now(), 1):
		m.missed++
	default:
		m.mention()
		m.left -= len(text)
		m.log.Info("upstream stderr", "line", text)
	}
}

func (m *murmur) mention() {
	if m.missed > 0 && m.left >= 0 {
		m.log.Warn("upstream writes to standard error faster than is logged", "missed", m.missed)
	}
	m.missed = 0
}
