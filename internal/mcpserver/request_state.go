package mcpserver

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/catalogd/catalogd/internal/token"
	"github.com/catalogd/catalogd/registry"
)

const (
	// stateTime is how long a client may take between a question and the call with the answers.
	stateTime = 10 * time.Minute
	// maxUsed caps the states of one branch that were used within about stateTime; above it, states are
	// refused until the oldest are forgotten.
	maxUsed = 100_000
)

// errState is the only error for a refused state: a more specific one would help an attacker who forges
// states.
var errState = errors.New("requestState is not one of this very call: it was changed, used before, has expired, or belongs to another " +
	"tool, branch, caller or to other arguments; call again from the start, without it")

// seal creates and verifies the requestState of one branch. A state belongs to one call: it is accepted once,
// before it expires, from the same principal, for the same tool and arguments. The list of used states is kept
// in memory, and so is the key unless Config.StateKey makes it: then each process with that key accepts a
// state once. All methods are safe for concurrent use.
type seal struct {
	key [32]byte
	// now is time.Now; tests replace it.
	now func() time.Time

	mu sync.Mutex
	// used and before hold the nonces of the accepted states, of the current period and the previous one.
	used, before map[nonce]struct{}
	since        time.Time
}

type nonce [16]byte

// newSeal returns a seal with a random key.
func newSeal(now func() time.Time) *seal {
	s := &seal{now: now, used: map[nonce]struct{}{}, since: now()}
	rand.Read(s.key[:]) // never fails (crypto/rand, Go 1.24)
	return s
}

// newSeal returns the seal of one branch for one caller.
func (s *Server) newSeal(branch string, c token.Caller) *seal {
	out := newSeal(time.Now)
	if s.StateKey != nil {
		h, caller := hmac.New(sha256.New, s.StateKey), c.Key()
		for _, part := range [][]byte{[]byte("catalogd requestState key 1"), []byte(branch), caller[:]} {
			h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
			h.Write(part)
		}
		h.Sum(out.key[:0])
	}
	return out
}

// holds reports whether a call that came in 2026-07-28 may go on running while its client is asked. Where a
// client's next round may reach another process it may not: that process could not find the call.
func (s *Server) holds(able registry.Abilities) bool { return len(able) > 0 && s.StateKey == nil }

// subject is what a state is bound to.
type subject struct {
	branch, principal, tool, dialect string
	// arguments is the result of digest for the arguments.
	arguments [sha256.Size]byte
}

// digest returns a hash of the canonical form of arguments, which have passed the scan: a client may reorder
// members between rounds.
func digest(arguments json.RawMessage) [sha256.Size]byte {
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	return sha256.Sum256(canonicalJSON(arguments))
}

// close returns a new state that holds remembered, and its nonce.
func (s *seal) close(of subject, remembered []byte) (string, nonce) {
	var n nonce
	rand.Read(n[:])
	body := append(make([]byte, 0, 8+len(n)+len(remembered)+sha256.Size), n[:]...)
	body = binary.BigEndian.AppendUint64(body, uint64(s.now().Add(stateTime).UnixNano()))
	body = append(body, remembered...)
	return base64.RawURLEncoding.EncodeToString(append(body, s.mac(of, body)...)), n
}

// open verifies a state and returns what it holds; it accepts each state once.
func (s *seal) open(of subject, state string) ([]byte, nonce, error) {
	var n nonce
	sealed, err := base64.RawURLEncoding.DecodeString(state)
	if err != nil || len(sealed) < len(n)+8+sha256.Size || base64.RawURLEncoding.EncodeToString(sealed) != state {
		return nil, n, errState // refuses another spelling of the same bytes, too
	}
	body, mac := sealed[:len(sealed)-sha256.Size], sealed[len(sealed)-sha256.Size:]
	if !hmac.Equal(mac, s.mac(of, body)) {
		return nil, n, errState
	}
	copy(n[:], body)
	until := time.Unix(0, int64(binary.BigEndian.Uint64(body[len(n):])))
	if !s.take(n, until) {
		return nil, n, errState
	}
	return body[len(n)+8:], n, nil
}

// take marks a state as used. It returns false for a state that has expired or was used before, and at
// maxUsed.
func (s *seal) take(n nonce, until time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if now.Sub(s.since) > stateTime { // the states of the period before the last have expired
		s.used, s.before, s.since = map[nonce]struct{}{}, s.used, now
	}
	_, used := s.used[n]
	_, usedBefore := s.before[n]
	if used || usedBefore || !now.Before(until) || len(s.used)+len(s.before) >= maxUsed {
		return false
	}
	s.used[n] = struct{}{}
	return true
}

// mac is HMAC-SHA256 over the subject and the body, each part preceded by its length.
func (s *seal) mac(of subject, body []byte) []byte {
	h := hmac.New(sha256.New, s.key[:])
	for _, part := range [][]byte{
		[]byte("catalogd requestState 1"), []byte(of.branch), []byte(of.principal), []byte(of.tool), []byte(of.dialect), of.arguments[:], body,
	} {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write(part)
	}
	return h.Sum(nil)
}
