package decisionlog

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/catalogd/catalogd/decision"
)

// Entry is an event read back from a file.
type Entry struct {
	ID   string    `json:"decision_id"`
	Path string    `json:"path"`
	Time time.Time `json:"timestamp"`
	// Input and Result are what was asked and answered, without what Erased and Masked name.
	Input  json.RawMessage `json:"input"`
	Result json.RawMessage `json:"result"`
	Erased []string        `json:"erased"`
	Masked []string        `json:"masked"`
	Custom struct {
		Generation string   `json:"generation"`
		Policy     string   `json:"policy"`
		Rules      []string `json:"rules"`
		// Arguments is the digest of a call's arguments; empty where there is none.
		Arguments string `json:"arguments"`
	} `json:"custom"`
	// File and Line are its position.
	File string `json:"-"`
	Line int    `json:"-"`
}

// Point returns the decision point that was asked; empty for an event about the log itself.
func (e Entry) Point() decision.Point {
	point, ok := strings.CutPrefix(e.Path, "catalogd/")
	if !ok || point == "log" {
		return ""
	}
	return decision.Point(point)
}

// Find returns the event with that decision id from the file or the files it was rotated to: NAME.1, NAME.2
// and so on. It skips lines that can't be read, such as torn ones.
func Find(name, id string) (Entry, error) {
	searched := []string{}
	for i := 0; ; i++ {
		at := name
		if i > 0 {
			at = fmt.Sprintf("%s.%d", name, i)
		}
		e, ok, err := findIn(at, id)
		switch {
		case errors.Is(err, fs.ErrNotExist) && i > 0:
			return Entry{}, fmt.Errorf("there is no decision %q in %s; a file that was rotated away before is gone (--decision-log-keep)", id, strings.Join(searched, ", "))
		case err != nil:
			return Entry{}, err
		case ok:
			return e, nil
		}
		searched = append(searched, at)
	}
}

func findIn(name, id string) (found Entry, ok bool, err error) {
	f, err := os.Open(name)
	if err != nil {
		return Entry{}, false, err
	}
	defer f.Close() // it was only read
	lines := bufio.NewReader(f)
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if bytes.Contains(line, []byte(id)) {
			var e Entry
			if json.Unmarshal(line, &e) == nil && e.ID == id {
				e.File, e.Line = name, number
				return e, true, nil
			}
		}
		if errors.Is(err, io.EOF) {
			return Entry{}, false, nil
		}
		if err != nil {
			return Entry{}, false, fmt.Errorf("%s: %w", name, err)
		}
	}
}
