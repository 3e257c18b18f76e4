package upstream

import (
	"bytes"
	"log/slog"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/catalogd/catalogd/internal/secret"
)

const (
	// heldLine caps how much of one line of standard error is read, shownLine how much is logged, in bytes.
	heldLine, shownLine = 16 << 10, 1 << 10
	// shownAll caps how much of one process's standard error is logged, in bytes.
	shownAll = 4 << 20
	// shownRate and shownBurst limit the lines logged, per second and at once.
	shownRate, shownBurst = 10, 200
)

// stderrLog copies a child's standard error to the log, line by line, as it is written. Secrets are masked,
// control characters quoted, and excess output is omitted and counted: a child can't fill the log, or forge a
// line of it. It never fails and never blocks, so the child isn't delayed. Write and end are not for
// concurrent use.
type stderrLog struct {
	log     *slog.Logger
	private *secret.Masker
	line    []byte
	cut     bool // the line is longer than what is held of it
	rate    *rate.Limiter
	left    int // bytes that may still be logged; below 0 once that was said
	missed  int // lines left out since the last one logged
}

func newStderrLog(log *slog.Logger, private *secret.Masker) *stderrLog {
	return &stderrLog{log: log, private: private, rate: rate.NewLimiter(shownRate, shownBurst), left: shownAll}
}

func (m *stderrLog) Write(b []byte) (int, error) {
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

// end logs an unfinished last line, and the final count of omitted lines.
func (m *stderrLog) end() {
	m.say()
	m.mention()
}

// say logs the current line.
func (m *stderrLog) say() {
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

func (m *stderrLog) mention() {
	if m.missed > 0 && m.left >= 0 {
		m.log.Warn("upstream writes to standard error faster than is logged", "missed", m.missed)
	}
	m.missed = 0
}
