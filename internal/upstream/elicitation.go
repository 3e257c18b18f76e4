package upstream

import (
	"encoding/json"
	"slices"
	"sync"
)

// maxOpened caps the pages remembered for one session that users were asked to open and that are not
// complete.
const maxOpened = 256

// pages are the pages that a server has asked users to open (elicitation of mode url). The server notifies of
// their completion, possibly after the call has ended. The zero value is ready for use.
type pages struct {
	mu sync.Mutex
	// by holds the functions to call on completion, by elicitationId; ids are those ids, the oldest first.
	by  map[string]func(params json.RawMessage)
	ids []string
}

// open registers a page, with the function to call on its completion.
func (p *pages) open(id string, completed func(params json.RawMessage)) {
	if id == "" || completed == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.by == nil {
		p.by = map[string]func(json.RawMessage){}
	}
	if p.by[id] == nil {
		p.ids = append(p.ids, id)
	}
	p.by[id] = completed
	if len(p.ids) > maxOpened {
		delete(p.by, p.ids[0])
		p.ids = p.ids[1:]
	}
}

// complete forwards the params of notifications/elicitation/complete, once, and reports whether the page is
// known.
func (p *pages) complete(params json.RawMessage) bool {
	var notice struct {
		ID   string          `json:"elicitationId"`
		Meta json.RawMessage `json:"_meta,omitempty"`
	}
	if json.Unmarshal(params, &notice) != nil {
		return false
	}
	p.mu.Lock()
	completed := p.by[notice.ID]
	delete(p.by, notice.ID)
	p.ids = slices.DeleteFunc(p.ids, func(id string) bool { return id == notice.ID })
	p.mu.Unlock()
	if completed == nil {
		return false
	}
	notice.Meta = ownMeta(notice.Meta)
	completed(encode(notice))
	return true
}
