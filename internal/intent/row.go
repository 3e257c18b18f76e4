package intent

import (
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/catalogd/catalogd/registry"
)

// stateNumbers are the states by their stored number, minus 1. Stored numbers must never change.
var stateNumbers = [...]State{
	Staged, AwaitingApproval, Released, Attempted, AwaitingInput, Succeeded, Failed, Unknown, Refused, Cancelled, Expired,
}

// number returns the stored number of a state, from 1; 0 for an unknown state.
func (s State) number() int {
	for i, n := range stateNumbers {
		if n == s {
			return i + 1
		}
	}
	return 0
}

func stateOf(number int) (State, error) {
	if number < 1 || number > len(stateNumbers) {
		return "", fmt.Errorf("%w: an intent is in state number %d", errDamaged, number)
	}
	return stateNumbers[number-1], nil
}

// errDamaged is wrapped by the errors for rows that this package can't have written.
var errDamaged = errors.New("the record is damaged")

// storedStep is the stored form of a Step. A history is a concatenation of such JSON values, so that a step
// can be appended without reading the others.
type storedStep struct {
	State State  `json:"s"`
	At    int64  `json:"t"`
	By    string `json:"b,omitempty"`
	Why   string `json:"w,omitempty"`
}

func storeSteps(steps []Step, at int64) (string, error) {
	var b strings.Builder
	for _, step := range steps {
		when := nanoseconds(step.At)
		if at != 0 {
			when = at
		}
		text, err := json.Marshal(storedStep{step.State, when, step.By, step.Why})
		if err != nil {
			return "", err
		}
		b.Write(text)
	}
	return b.String(), nil
}

func readSteps(text string) ([]Step, error) {
	var steps []Step
	for d := json.NewDecoder(strings.NewReader(text)); ; {
		var one storedStep
		err := d.Decode(&one)
		if errors.Is(err, io.EOF) {
			return steps, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errDamaged, err)
		}
		steps = append(steps, Step{one.State, timeOf(one.At), one.By, one.Why})
	}
}

// rowOf is a row of an intent.
type rowOf struct {
	Intent
	state                       int
	id                          []byte
	staged, ended, expires      int64
	key, approval, args, result sql.NullString
	history, code               string
	handed, repeatable          bool
}

// into returns the scan destinations for columns, with or without the result.
func (r *rowOf) into(withResult bool) []any {
	to := []any{
		&r.Seq, &r.state, &r.id, &r.Branch, &r.Principal, &r.Tool, &r.Session, &r.Owner,
		&r.staged, &r.ended, &r.expires, &r.Attempts, &r.handed, &r.repeatable,
		&r.Digest, &r.key, &r.Credential, &r.Fingerprint, &r.Policy, &r.Generation, &r.approval, &r.history,
		&r.code, &r.Message, &r.ResultBytes, &r.ResultDigest, &r.args,
	}
	if withResult {
		to = append(to, &r.result)
	}
	return to
}

// intent converts the row.
func (r *rowOf) intent() (Intent, error) {
	in := r.Intent
	var err error
	if in.State, err = stateOf(r.state); err != nil {
		return Intent{}, err
	}
	if in.History, err = readSteps(r.history); err != nil {
		return Intent{}, err
	}
	in.ID, in.Key, in.Handed, in.Repeatable = hex.EncodeToString(r.id), r.key.String, r.handed, r.repeatable
	in.Staged, in.Ended, in.Expires = timeOf(r.staged), timeOf(r.ended), timeOf(r.expires)
	in.Code = registry.ErrorCode(r.code)
	if r.args.Valid {
		in.Arguments = json.RawMessage(r.args.String)
	}
	if r.approval.Valid {
		if err := json.Unmarshal([]byte(r.approval.String), &in.Approval); err != nil {
			return Intent{}, fmt.Errorf("%w: %w", errDamaged, err)
		}
	}
	if r.result.Valid {
		if err := json.Unmarshal([]byte(r.result.String), &in.Result); err != nil {
			return Intent{}, fmt.Errorf("%w: %w", errDamaged, err)
		}
	}
	return in, nil
}

// storeApproval returns the stored form of an approval; nil for none.
func storeApproval(a *Approval) (any, error) {
	if a == nil {
		return nil, nil
	}
	text, err := json.Marshal(a)
	return string(text), err
}

// storedOutcome returns the arguments of sqlOutcome.
func (s *Store) storedOutcome(o Outcome) ([]any, error) {
	var result any
	if o.Result != nil {
		text, err := json.Marshal(o.Result)
		if err != nil {
			return nil, err
		}
		if n := int64(len(text)); n > s.cfg.MaxResult {
			sum := sha256.Sum256(text)
			o.ResultBytes, o.ResultDigest = n, "sha256:"+hex.EncodeToString(sum[:])
		} else {
			result = string(text)
		}
	}
	return []any{string(o.Code), o.Message, o.ResultBytes, o.ResultDigest, result}, nil
}
