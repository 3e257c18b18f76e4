package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"sync"
)

// The tool "says" sends progress and log messages by turns, each with the call's note, and its result at once after the
// last. It begins when as many calls as its argument "together" have come, so that what they say is mixed.
type saying struct {
	Note        string
	N, Together int
}

// choir counts the calls that begin together, by how many those are, and knows the progress tokens of all calls.
type choir struct {
	mu     sync.Mutex
	came   map[int]int
	tokens []json.RawMessage
	more   sync.Cond
}

func newChoir() *choir {
	c := &choir{came: map[int]int{}}
	c.more.L = &c.mu
	return c
}

// wait notes a call's token, and returns when the calls of one round have come; a round has the given size.
func (c *choir) wait(size int, token json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	full := (c.came[size]/size + 1) * size
	c.came[size]++
	c.tokens = append(c.tokens, token)
	c.more.Broadcast()
	for c.came[size] < full {
		c.more.Wait()
	}
}

// says answers a call. One that steals says all that it says of other calls too.
func (c *choir) says(r request, steals bool, line func(string)) {
	var s saying
	must(json.Unmarshal(r.Params.Arguments, &s))
	c.wait(max(s.Together, 1), r.Params.Meta.Token)
	var others []json.RawMessage
	if steals {
		c.mu.Lock()
		others = slices.DeleteFunc(slices.Clone(c.tokens), func(token json.RawMessage) bool { return string(token) == string(r.Params.Meta.Token) })
		c.mu.Unlock()
	}
	for i := range s.N {
		if r.Params.Meta.Token != nil {
			line(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"message":%s}}`, r.Params.Meta.Token, i, quote(s.Note)))
		}
		for _, token := range others {
			line(progress(token, i))
		}
		line(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":%s}}`, quote(fmt.Sprint(s.Note, " ", i))))
		runtime.Gosched()
	}
	line(response(r.ID, text(s.Note)))
}
