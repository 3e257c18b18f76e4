package mcpserver

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"net/http"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/server"

	"github.com/catalogd/catalogd/internal/token"
	"github.com/catalogd/catalogd/registry"
)

const (
	// maxDeclared is the most bytes of capabilities that a session's id carries; a session of a client that
	// declares more ends with its process.
	maxDeclared = 1 << 10
	// maxEnded is how many sessions of one branch and caller, ended by DELETE, are remembered. An older one could
	// be resumed, by its own client.
	maxEnded = 10_000
)

// sessionSeal makes ids of sessions that can be resumed: by another process with the same key, which is a
// daemon after a restart, and after the session expired. The specification has a client begin a new session
// where it gets a 404 (2025-11-25, session management), but several widely used ones don't.
//
// An id is 16 random bytes in hex, the capabilities that the client declared and a MAC, in base64url, separated
// by dots. It is bound to the branch and the caller, and grants nothing: a request needs its token with it or
// without. What a resumed session has lost is its log level and the requests that were open. The nil seal makes
// ids that can't be resumed. All methods are safe for concurrent use.
type sessionSeal struct {
	key [sha256.Size]byte

	mu sync.Mutex
	// ended are the ids that were ended by DELETE, the oldest first in order.
	ended map[string]struct{}
	order []string
}

// newSessionSeal returns the seal of one branch for one caller; nil without a key.
func (s *Server) newSessionSeal(branch string, c token.Caller) *sessionSeal {
	if s.SessionKey == nil {
		return nil
	}
	out := &sessionSeal{ended: map[string]struct{}{}}
	h, caller := hmac.New(sha256.New, s.SessionKey), c.Key()
	for _, part := range [][]byte{[]byte(branch), caller[:]} {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write(part)
	}
	h.Sum(out.key[:0])
	return out
}

// id returns the id of a new session whose client has declared able.
func (s *sessionSeal) id(able registry.Abilities) string {
	random := registry.NewCallID()
	if s == nil {
		return random
	}
	declared, err := json.Marshal(able)
	if err != nil || len(declared) > maxDeclared {
		return random
	}
	body := random + "." + base64.RawURLEncoding.EncodeToString(declared)
	return body + "." + base64.RawURLEncoding.EncodeToString(s.mac(body))
}

// opens returns what the client of a session declared, if the id is one of the seal's and the session was not
// ended by its client.
func (s *sessionSeal) opens(id string) (registry.Abilities, bool) {
	if s == nil {
		return nil, false
	}
	end := strings.LastIndexByte(id, '.')
	if end < 0 || !hmac.Equal([]byte(id[end+1:]), []byte(base64.RawURLEncoding.EncodeToString(s.mac(id[:end])))) {
		return nil, false
	}
	s.mu.Lock()
	_, ended := s.ended[id]
	s.mu.Unlock()
	if ended {
		return nil, false
	}
	_, encoded, _ := strings.Cut(id[:end], ".")
	declared, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return nil, false
	}
	var able registry.Abilities
	if json.Unmarshal(declared, &able) != nil {
		return nil, false
	}
	return able, true
}

func (s *sessionSeal) mac(body string) []byte {
	h := hmac.New(sha256.New, s.key[:])
	h.Write([]byte(body))
	return h.Sum(nil)
}

// end notes that a session was ended by its client.
func (s *sessionSeal) end(id string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.ended[id]; known {
		return
	}
	if len(s.order) >= maxEnded {
		delete(s.ended, s.order[0])
		s.order = s.order[1:]
	}
	s.ended[id] = struct{}{}
	s.order = append(s.order, id)
}

// resumeSession begins a session again that another process began, or that has expired; an id that no seal made has no
// effect. The error says which limit is reached.
func (b *branch) resumeSession(id string) *registry.Error {
	able, ok := b.resumable.opens(id)
	if !ok {
		return nil
	}
	if full := b.server.reserve(b); full != nil {
		return full
	}
	b.sessions.begin(id)
	if s, done, err := b.sessions.use(id); err == nil {
		s.questions.declared(able, b.later(id))
		done()
	}
	return nil
}

// declares is the context key of the registry.Abilities in an initialize request.
type declares struct{}

// ResolveSessionIdManager implements mcp-go's SessionIdManagerResolver; r may be nil.
func (b *branch) ResolveSessionIdManager(r *http.Request) server.SessionIdManager {
	if r != nil {
		if able, ok := r.Context().Value(declares{}).(registry.Abilities); ok {
			return starting{b.sessions, b.resumable, able}
		}
	}
	return b.sessions
}

// starting are the sessions of a branch while initialize begins one.
type starting struct {
	*sessions
	seal *sessionSeal
	able registry.Abilities
}

// Generate begins a session on a reservation and returns its id.
func (s starting) Generate() string {
	id := s.seal.id(s.able)
	s.begin(id)
	return id
}
