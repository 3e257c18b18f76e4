package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/catalogd/catalogd/internal/progress"
)

const (
	// progressAfter is how long a command works in silence.
	progressAfter = 500 * time.Millisecond
	// progressEvery is how often its line of progress is written again at most.
	progressEvery = 200 * time.Millisecond
	// progressLog is how often a daemon that starts logs how far it is.
	progressLog = 10 * time.Second
	// defaultColumns is the width of a terminal that does not say its own.
	defaultColumns = 80
	// echo is how many columns the terminal's own ^C takes.
	echo = 2
)

// screen is standard error on a terminal: what is written, and below it one line of progress, which every
// write erases first. It is made of carriage returns and spaces, without escape sequences.
type screen struct {
	w     io.Writer
	fd    func() uintptr
	mu    sync.Mutex
	drawn int // columns of the line of progress
}

// newScreen returns w as it is if it is no terminal.
func newScreen(w io.Writer) io.Writer {
	f, ok := w.(*os.File)
	if !ok || !isTerminal(w) {
		return w
	}
	return &screen{w: f, fd: f.Fd}
}

// Fd is that of the terminal.
func (s *screen) Fd() uintptr { return s.fd() }

func (s *screen) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.draw("", 0); err != nil {
		return 0, err
	}
	return s.w.Write(text)
}

// show replaces the line of progress, cut to less than the terminal's columns.
func (s *screen) show(line string, columns int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.draw(line, columns)
}

func (s *screen) draw(line string, columns int) error {
	if columns == 0 {
		columns = defaultColumns
	}
	if runes, most := []rune(line), max(columns-1-echo, 0); len(runes) > most {
		line = string(runes[:most])
	}
	width := len([]rune(line))
	text := "\r" + line + strings.Repeat(" ", max(s.drawn-width, 0))
	switch {
	case width == 0 && s.drawn == 0:
		return nil
	case width == 0:
		text += strings.Repeat(" ", echo) + "\r"
	}
	s.drawn = width
	_, err := io.WriteString(s.w, text)
	return err
}

// progress shows on a terminal what is running and how far it is, if it takes longer than a moment, until the
// returned function is called. what is shown before the first step.
func (e *env) progress(what string) (done func()) {
	s, ok := unwrapped(e.stderr).(*screen)
	if !ok || e.logsJSON() || os.Getenv("TERM") == "dumb" {
		return func() {}
	}
	e.meter.Reset()
	return s.follow(e.meter, what)
}

// follow writes the line of progress, until done erases it.
func (s *screen) follow(m *progress.Meter, what string) (done func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var showing sync.WaitGroup
	began := time.Now()
	showing.Go(func() {
		wait := time.NewTimer(progressAfter)
		defer wait.Stop()
		last := ""
		for {
			select {
			case <-ctx.Done():
				_ = s.show("", 0) // a terminal that is gone is no error of the command
				return
			case <-wait.C:
			}
			wait.Reset(progressEvery)
			line := what
			if step := m.Step(); step != nil {
				line = step.String()
			}
			if seconds := int(time.Since(began).Seconds()); seconds > 0 {
				line += fmt.Sprintf(" (%d s)", seconds)
			}
			if line != last {
				_ = s.show(line, columns(s))
				last = line
			}
		}
	})
	return func() { cancel(); showing.Wait() }
}

// starting shows how far the first build of a daemon is: on a terminal, else in the log.
func (e *env) starting(log *slog.Logger) (done func()) {
	if !e.logsJSON() && isTerminal(e.stderr) {
		return e.progress("starting")
	}
	ctx, cancel := context.WithCancel(context.Background())
	var logging sync.WaitGroup
	began := time.Now()
	logging.Go(func() {
		tick := time.NewTicker(progressLog)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if step := e.meter.Step(); step != nil {
				finished, of := step.Counts()
				log.Info("starting", "step", step.What, "done", finished, "of", of,
					"duration", time.Since(began).Round(time.Second))
			}
		}
	})
	return func() { cancel(); logging.Wait() }
}
