package intent

import (
	"context"
)

// sweepChunk is the maximum number of rows that one transaction of Sweep removes, so that other changes don't
// wait long.
const sweepChunk = 100

// oldRow is an ended intent that Sweep looks at.
type oldRow struct {
	seq           int64
	state         int
	staged, ended int64
	key           bool
}

// Sweep removes ended intents that are older than MaxAge, and the oldest ended ones while MaxCount or
// MaxBytes is exceeded. It returns how many it removed. It keeps intents that are unfinished or Unknown,
// those whose key is within KeyRetention, and the newest one. The file keeps its size; new intents reuse the
// space.
func (s *Store) Sweep(ctx context.Context) (removed int64, err error) {
	last, err := s.newestSeq(ctx)
	if err != nil {
		return 0, s.readFailed(ctx, err)
	}
	for after := int64(0); ; {
		rows, err := s.oldest(ctx, after, last)
		if err != nil {
			return removed, s.readFailed(ctx, err)
		}
		if len(rows) == 0 {
			return removed, nil
		}
		used, err := s.bytesUsed(ctx)
		if err != nil {
			return removed, s.readFailed(ctx, err)
		}
		excess, err := s.excess(ctx) // each time, since another process may sweep as well
		if err != nil {
			return removed, err
		}
		now := s.clock.now()
		tooMany := excess > 0 || used > s.cfg.MaxBytes
		if !tooMany && now-rows[0].staged < int64(s.cfg.MaxAge) {
			return removed, nil // later ones can't have ended earlier
		}
		after = rows[len(rows)-1].seq
		var old []oldRow
		for _, r := range rows {
			keyed := r.key && now-r.staged < int64(s.cfg.KeyRetention)
			switch {
			case keyed:
			case now-r.ended >= int64(s.cfg.MaxAge), used > s.cfg.MaxBytes, excess > 0:
				old = append(old, r)
				excess--
			}
		}
		n, err := s.remove(ctx, old)
		removed += n
		if err != nil {
			return removed, err
		}
	}
}

// excess returns by how many the ended intents exceed MaxCount.
func (s *Store) excess(ctx context.Context) (n int64, err error) {
	counts, err := s.Counts(ctx)
	for state, of := range counts {
		if state.Ended() && state != Unknown {
			n += of
		}
	}
	return n - int64(s.cfg.MaxCount), err
}

func (s *Store) remove(ctx context.Context, old []oldRow) (n int64, err error) {
	if len(old) == 0 {
		return 0, nil
	}
	err = s.do(ctx, "sweep", func(b *batch) error {
		for _, r := range old {
			if b.exec(&s.stmts.remove, r.seq, r.state) == 1 { // else another process has changed or removed it
				b.delta[r.state]--
				n++
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// newestSeq returns the seq of the newest intent, which is never removed, so that no seq is used twice.
func (s *Store) newestSeq(ctx context.Context) (last int64, err error) {
	err = s.read.QueryRowContext(ctx, "SELECT coalesce(max(seq), 0) FROM intents").Scan(&last)
	return last, err
}

// bytesUsed returns how many bytes of the file are in use.
func (s *Store) bytesUsed(ctx context.Context) (used int64, err error) {
	err = s.read.QueryRowContext(ctx, `SELECT (p.page_count - f.freelist_count) * z.page_size
		FROM pragma_page_count p, pragma_freelist_count f, pragma_page_size z`).Scan(&used)
	return used, err
}

// oldest returns the next ended intents that may be removed, in the order in which they were staged.
func (s *Store) oldest(ctx context.Context, after, last int64) ([]oldRow, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT seq, state, staged, ended, key IS NOT NULL FROM intents
		WHERE seq > ? AND seq < ? AND +state IN (?, ?, ?, ?, ?) ORDER BY seq LIMIT ?`, after, last,
		Succeeded.number(), Failed.number(), Refused.number(), Cancelled.number(), Expired.number(), sweepChunk)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var old []oldRow
	for rows.Next() {
		var r oldRow
		if err := rows.Scan(&r.seq, &r.state, &r.staged, &r.ended, &r.key); err != nil {
			return nil, err
		}
		old = append(old, r)
	}
	return old, rows.Err()
}
