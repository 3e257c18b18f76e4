package upstream

import (
	"bufio"
	"bytes"
	"io"
	"strconv"
	"strings"
	"time"
)

// events reads a server's event stream (HTML Living Standard, 9.2).
type events struct {
	in *bufio.Reader
	// max caps one line, and the data of one event.
	max int64
	// lastID and retry are for resuming a stream that ended: the id of the last complete event, and the pause
	// that the server asks for; hasRetry reports that it does.
	lastID   string
	retry    time.Duration
	hasRetry bool

	begun, afterCR bool
}

// event holds one event. Its data lines are joined by spaces: a line end in JSON is always between tokens,
// where a space is equivalent and keeps the text on one line.
type event struct {
	data  []byte
	id    string
	hasID bool
}

func newEvents(body io.Reader, max int64) *events {
	return &events{in: bufio.NewReaderSize(body, 32<<10), max: max}
}

// next returns the next event with data. At the end of the stream it returns the incomplete event, and after
// that the error.
func (e *events) next() (data []byte, err error) {
	var ev event
	hasData := false
	for {
		line, err := e.line()
		if err != nil {
			if err == io.EOF && hasData { // without its end; its id is nothing to resume from
				return ev.data, nil
			}
			return nil, err
		}
		if len(line) == 0 {
			if ev.hasID {
				e.lastID = ev.id
			}
			if hasData && len(ev.data) > 0 {
				return ev.data, nil
			}
			ev, hasData = event{}, false
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "data":
			if hasData {
				ev.data = append(ev.data, ' ')
			}
			ev.data, hasData = append(ev.data, value...), true
			if int64(len(ev.data)) > e.max {
				return nil, tooLargeError{e.max}
			}
		case "id":
			if !bytes.ContainsRune(value, 0) {
				ev.id, ev.hasID = string(value), true
			}
		case "retry":
			digits := strings.Trim(string(value), "0123456789") == ""
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil && digits {
				e.retry, e.hasRetry = time.Duration(ms)*time.Millisecond, true
			}
		}
	}
}

// line returns the next line without its end, which is CR LF, LF or CR.
func (e *events) line() ([]byte, error) {
	if !e.begun {
		e.begun = true
		if first, _ := e.in.Peek(3); len(withoutBOM(first)) < len(first) {
			_, _ = e.in.Discard(len(first))
		}
	}
	var line []byte
	for {
		if _, err := e.in.Peek(1); err != nil {
			if err == io.EOF && len(line) > 0 {
				return line, nil
			}
			return nil, err
		}
		part, _ := e.in.Peek(e.in.Buffered()) // what is buffered is there
		if e.afterCR {
			e.afterCR = false
			if part[0] == '\n' {
				_, _ = e.in.Discard(1)
				continue
			}
		}
		end := bytes.IndexAny(part, "\r\n")
		ended := end >= 0
		if !ended {
			end = len(part)
		}
		if int64(len(line)+end) > e.max {
			return nil, tooLargeError{e.max}
		}
		line = append(line, part[:end]...)
		if !ended {
			_, _ = e.in.Discard(end)
			continue
		}
		e.afterCR = part[end] == '\r'
		_, _ = e.in.Discard(end + 1)
		if line == nil {
			line = []byte{}
		}
		return line, nil
	}
}
