package serve

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
)

const (
	// stateTime is how long a client may take from a question to the call with the answers.
	stateTime = 10 * time.Minute
	// maxUsed is how many states of one branch may have been used within stateTime; until the oldest are forgotten, no
	// further one is taken.
	maxUsed = 100_000
)

// errState is all that a client is told of a state that isn't taken: which of these it is would help who forges one.
var errState = errors.New("requestState is not one of this very call: it was changed, used before, has expired, or belongs to another " +
	"tool, branch, caller or to other arguments; call again from the start, without it")

// seal makes the requestState of one branch, and opens what comes back. A state is of one call: it is taken once, in time,
// and from the same principal for the same tool and arguments. The key is random and lives in memory alone, as does the
// list of what was used: after a restart, and in another process, no state is taken. All methods are safe for concurrent
// use.
type seal struct {
	key [32]byte
	// now is time.Now; tests have their own.
	now func() time.Time

	mu sync.Mutex
	// used holds the nonces of the states that were taken, in those of this period and those of the one before.
	used, before map[nonce]struct{}
	since        time.Time
}

type nonce [16]byte

func newSeal(now func() time.Time) *seal {
	s := &seal{now: now, used: map[nonce]struct{}{}, since: now()}
	rand.Read(s.key[:]) // never fails (crypto/rand, Go 1.24)
	return s
}

// subject is what a state is good for.
type subject struct {
	branch, principal, tool, dialect string
	// arguments is the digest of the arguments as digest makes it.
	arguments [sha256.Size]byte
}

// digest is of what arguments, which have passed the scan, mean and not of how they are written: a client may order the
// members anew.
func digest(arguments json.RawMessage) [sha256.Size]byte {
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	return sha256.Sum256(canonicalJSON(arguments))
}

// close makes a state of something to remember.
func (s *seal) close(of subject, remembered []byte) (string, nonce) {
	var n nonce
	rand.Read(n[:])
	body := append(make([]byte, 0, 8+len(n)+len(remembered)+sha256.Size), n[:]...)
	body = binary.BigEndian.AppendUint64(body, uint64(s.now().Add(stateTime).UnixNano()))
	body = append(body, remembered...)
	return base64.RawURLEncoding.EncodeToString(append(body, s.mac(of, body)...)), n
}

// open returns what a state remembers, and takes it: it can't be opened again.
func (s *seal) open(of subject, state string) ([]byte, nonce, error) {
	var n nonce
	sealed, err := base64.RawURLEncoding.DecodeString(state)
	if err != nil || len(sealed) < len(n)+8+sha256.Size || base64.RawURLEncoding.EncodeToString(sealed) != state {
		return nil, n, errState // also another spelling of the same bytes
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

// take reports whether a state is in time and was not used before.
func (s *seal) take(n nonce, until time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if now.Sub(s.since) > stateTime { // what was used before the last period has expired
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

// mac is HMAC-SHA256 over the subject and the body, each part behind its length.
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
