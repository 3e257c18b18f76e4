package intent

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// MaxList is the maximum number of intents that List returns.
const MaxList = 1000

// Get returns an intent as last committed. The error wraps ErrUnknown if there is none.
func (s *Store) Get(ctx context.Context, id string) (Intent, error) {
	key, err := idBytes(id)
	if err != nil {
		return Intent{}, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	if err := s.usable(); err != nil {
		return Intent{}, err
	}
	var r rowOf
	err = s.stmts.get.QueryRowContext(ctx, key).Scan(r.into(true)...)
	if errors.Is(err, sql.ErrNoRows) {
		return Intent{}, fmt.Errorf("%w: %s", ErrUnknown, id)
	}
	if err != nil {
		return Intent{}, s.readFailed(ctx, err)
	}
	in, err := r.intent()
	return in, s.wrap("read", dbName, err)
}

// readFailed returns the context's error if the caller was cancelled, else a *StoreError.
func (s *Store) readFailed(ctx context.Context, err error) error {
	if e := ctx.Err(); e != nil {
		return e
	}
	return s.failed("read", dbName, err)
}

// Filter says which intents to list; an empty field means any.
type Filter struct {
	Branch, Principal, Tool string
	// Session selects the intents of one conversation branch, "" those of none; nil selects all.
	Session *string
	States  []State
	// Before selects only intents with a lower Seq; 0 means all.
	Before int64
	// Limit is the maximum number of intents; 0 and values over MaxList mean MaxList.
	Limit int
}

// List returns intents from one consistent read, the newest first. Their Result is nil; Get has it.
func (s *Store) List(ctx context.Context, f Filter) ([]Intent, error) {
	if f.Limit <= 0 || f.Limit > MaxList {
		f.Limit = MaxList
	}
	if err := s.usable(); err != nil {
		return nil, err
	}
	list, err := s.list(ctx, f)
	if err != nil {
		return nil, s.readFailed(ctx, err)
	}
	return list, nil
}

func (s *Store) list(ctx context.Context, f Filter) ([]Intent, error) {
	tx, err := s.read.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }() // nothing was written
	which, err := f.parts(ctx, tx)
	if err != nil {
		return nil, err
	}
	// Each part is read in the order of an index, and the newest of all are the answer.
	var list []Intent
	for _, p := range which {
		part, err := p.read(ctx, tx, f)
		if err != nil {
			return nil, err
		}
		list = append(list, part...)
		slices.SortFunc(list, func(a, b Intent) int { return int(b.Seq - a.Seq) })
		list = list[:min(len(list), f.Limit)]
	}
	return list, nil
}

// Waiting returns the number of intents of a branch that wait for an approval, and how many of them a principal has.
func (s *Store) Waiting(ctx context.Context, branch, principal string) (all, own int, err error) {
	if err := s.usable(); err != nil {
		return 0, 0, err
	}
	err = s.read.QueryRowContext(ctx, "SELECT count(*), count(*) FILTER (WHERE c.principal = ?) "+
		"FROM intents i JOIN scopes c ON c.id = i.scope WHERE i.state = ? AND c.branch = ?",
		principal, AwaitingApproval.number(), branch).Scan(&all, &own)
	if err != nil {
		return 0, 0, s.readFailed(ctx, err)
	}
	return all, own, nil
}

// Executable returns the ids of released intents, the oldest first, that had an approval or an attempt and
// that are owned by this process or by no live one.
func (s *Store) Executable(ctx context.Context, limit int) (ids []string, err error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	rows, err := s.read.QueryContext(ctx, "SELECT id, owner FROM intents WHERE state = ? AND (approval IS NOT NULL OR attempts > 0) ORDER BY seq", Released.number())
	if err != nil {
		return nil, s.readFailed(ctx, err)
	}
	defer rows.Close()
	others := map[string]bool{"": false, s.Owner(): false} // whether the name is that of another live owner
	for rows.Next() && len(ids) < limit {
		var id []byte
		var owner string
		if err := rows.Scan(&id, &owner); err != nil {
			return nil, s.readFailed(ctx, err)
		}
		live, known := others[owner]
		if !known {
			live = s.Alive(owner)
			others[owner] = live
		}
		if !live {
			ids = append(ids, hex.EncodeToString(id))
		}
	}
	if err := rows.Err(); err != nil {
		return nil, s.readFailed(ctx, err)
	}
	return ids, nil
}

// part is a condition for which an index returns rows in the order of seq.
type part struct {
	where string
	args  []any
}

// parts splits the filter into conditions that indexes can answer: by state if few intents are in those
// states, else by scope, else by state, else all rows.
func (f Filter) parts(ctx context.Context, tx *sql.Tx) ([]part, error) {
	few := len(f.States) > 0
	var states []part
	for _, state := range f.States {
		if state.number() == 0 {
			return nil, fmt.Errorf("%q is not a state of an intent", state)
		}
		few = few && (!state.Ended() || state == Unknown)
		states = append(states, part{"i.state = ?", []any{state.number()}})
	}
	conditions, args := f.scope()
	if few || len(conditions) == 0 {
		for i := range states {
			states[i].where = strings.Join(append([]string{states[i].where}, conditions...), " AND ")
			states[i].args = append(states[i].args, args...)
		}
		if len(states) == 0 {
			states = []part{{"1", nil}}
		}
		return states, nil
	}
	in := ""
	if len(f.States) > 0 {
		numbers := make([]string, len(f.States))
		for i, state := range f.States {
			numbers[i] = strconv.Itoa(state.number())
		}
		in = " AND +i.state IN (" + strings.Join(numbers, ", ") + ")"
	}
	where := strings.Join(conditions, " AND ")
	rows, err := tx.QueryContext(ctx, "SELECT c.id FROM scopes c WHERE "+where+" LIMIT ?", append(args, maxScopes+1)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var scopes []part
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		scopes = append(scopes, part{"i.scope = ?" + in, []any{id}})
	}
	if len(scopes) > maxScopes {
		scopes = []part{{where + in, args}}
	}
	return scopes, rows.Err()
}

// maxScopes is the maximum number of scopes that List reads one by one. With more, reading all intents from
// the newest on is faster.
const maxScopes = 100

// scope returns the filter's conditions on the scope.
func (f Filter) scope() (conditions []string, args []any) {
	for _, c := range []struct{ column, value string }{{"principal", f.Principal}, {"branch", f.Branch}, {"tool", f.Tool}} {
		if c.value != "" {
			conditions, args = append(conditions, "c."+c.column+" = ?"), append(args, c.value)
		}
	}
	return conditions, args
}

func (p part) read(ctx context.Context, tx *sql.Tx, f Filter) ([]Intent, error) {
	text, args := "SELECT "+columns+" FROM intents i CROSS JOIN scopes c ON c.id = i.scope WHERE "+p.where, p.args
	if f.Session != nil {
		text, args = text+" AND i.session = ?", append(args, *f.Session)
	}
	if f.Before > 0 {
		text, args = text+" AND i.seq < ?", append(args, f.Before)
	}
	rows, err := tx.QueryContext(ctx, text+" ORDER BY i.seq DESC LIMIT ?", append(args, f.Limit)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []Intent
	for rows.Next() {
		var r rowOf
		if err := rows.Scan(r.into(false)...); err != nil {
			return nil, err
		}
		in, err := r.intent()
		if err != nil {
			return nil, err
		}
		list = append(list, in)
	}
	return list, rows.Err()
}

// Counts returns the number of intents in each state, in constant time.
func (s *Store) Counts(ctx context.Context) (map[State]int64, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	var n [len(stateNumbers)]int64
	into := make([]any, len(n))
	for i := range n {
		into[i] = &n[i]
	}
	err := s.stmts.counts.QueryRowContext(ctx).Scan(into...)
	if err != nil {
		return nil, s.readFailed(ctx, err)
	}
	counts := make(map[State]int64, len(n))
	for i, state := range stateNumbers {
		counts[state] = n[i]
	}
	return counts, nil
}
