package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"sync"
)

// The tool "says" sends progress and log messages by turns, each with the call's note, and its result at once after the
// last. It begins when as many calls as its argument "together" have come, so that what they say is mixed.
type saying struct {
	Note        string
	N, Together int
}

// choir counts the calls that begin together, by how many those are.
type choir struct {
	mu   sync.Mutex
	came map[int]int
	more sync.Cond
}

func newChoir() *choir {
	c := &choir{came: map[int]int{}}
	c.more.L = &c.mu
	return c
}

// wait returns when the calls of one round have come; a round has the given size.
func (c *choir) wait(size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	full := (c.came[size]/size + 1) * size
	c.came[size]++
	c.more.Broadcast()
	for c.came[size] < full {
		c.more.Wait()
	}
}

func (c *choir) says(r request, line func(string)) {
	var s saying
	must(json.Unmarshal(r.Params.Arguments, &s))
	c.wait(max(s.Together, 1))
	for i := range s.N {
		if r.Params.Meta.Token != nil {
			line(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"message":%s}}`, r.Params.Meta.Token, i, quote(s.Note)))
		}
		line(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":%s}}`, quote(fmt.Sprint(s.Note, " ", i))))
		runtime.Gosched()
	}
	line(response(r.ID, text(s.Note)))
}
