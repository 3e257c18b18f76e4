package intent

import (
	"context"
	"database/sql"
	"errors"
)

// statements are the prepared statements: get and counts of the readers' connections, all others of the
// writer's.
type statements struct {
	begin, commit, rollback, version   *sql.Stmt
	newest, totals                     *sql.Stmt
	scope, makeScope                   *sql.Stmt
	stage, byID, byKey, byHanded       *sql.Stmt
	stateAndOwner, change, end, remove *sql.Stmt

	get, counts *sql.Stmt

	all []*sql.Stmt
}

const (
	// columns are the columns of rowOf.into, in its order.
	columns = `i.seq, i.state, i.id, c.branch, c.principal, c.tool, i.session, i.owner,
		i.staged, i.ended, i.expires, i.attempts, i.handed, i.repeatable,
		i.digest, i.key, i.credential, i.print, i.policy, i.generation, i.approval, i.history,
		i.code, i.message, i.result_bytes, i.result_digest, i.arguments`
	fromIntents = ` FROM intents i JOIN scopes c ON c.id = i.scope`

	sqlTotals = `UPDATE totals SET newest = max(newest, ?), n1 = n1 + ?, n2 = n2 + ?, n3 = n3 + ?,
		n4 = n4 + ?, n5 = n5 + ?, n6 = n6 + ?,
		n7 = n7 + ?, n8 = n8 + ?, n9 = n9 + ?, n10 = n10 + ?, n11 = n11 + ?`
	sqlStage = `INSERT INTO intents (state, scope, id, session, owner, staged, ended, expires, attempts, handed, repeatable, digest, key,
		credential, print, policy, generation, approval, history, code, message, result_bytes, result_digest, arguments, result)
		VALUES (?, ?, ?, ?, ?, ?, 0, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '', '', 0, '', ?, NULL) ON CONFLICT (id) DO NOTHING`
	sqlChange = `UPDATE intents SET state = ?, history = history || ?, owner = coalesce(?, owner), attempts = attempts + ?,
		handed = max(handed, ?), approval = coalesce(?, approval), expires = coalesce(?, expires), ended = coalesce(?, ended)`
	sqlOutcome = `, code = ?, message = ?, result_bytes = ?, result_digest = ?, result = ?`
	sqlWhich   = ` WHERE id = ? AND state = ? AND (owner = ? OR ?)`
)

func (st *statements) prepare(ctx context.Context, s *Store) error {
	full := "SELECT " + columns + ", i.result" + fromIntents
	for _, p := range []struct {
		into **sql.Stmt
		text string
	}{
		{&st.begin, "BEGIN IMMEDIATE"},
		{&st.commit, "COMMIT"},
		{&st.rollback, "ROLLBACK"},
		{&st.version, "PRAGMA data_version"},
		{&st.newest, "SELECT newest FROM totals"},
		{&st.totals, sqlTotals},
		{&st.scope, "SELECT id FROM scopes WHERE principal = ? AND branch = ? AND tool = ?"},
		{&st.makeScope, "INSERT INTO scopes (branch, principal, tool) VALUES (?, ?, ?)"},
		{&st.stage, sqlStage},
		{&st.byID, full + " WHERE i.id = ?"},
		// The newest one: the key of an older one had expired before the newer one was staged.
		{&st.byKey, full + " WHERE i.scope = ? AND i.key = ? ORDER BY i.seq DESC LIMIT 1"},
		{&st.byHanded, full + " WHERE i.scope = ? AND i.digest = ? AND i.handed = 1 AND i.ended = 0 ORDER BY i.seq DESC LIMIT 1"},
		{&st.stateAndOwner, "SELECT state, owner FROM intents WHERE id = ?"},
		{&st.change, sqlChange + sqlWhich},
		{&st.end, sqlChange + sqlOutcome + sqlWhich},
		{&st.remove, "DELETE FROM intents WHERE seq = ? AND state = ?"},
	} {
		stmt, err := s.conn.PrepareContext(ctx, p.text)
		if err != nil {
			return err
		}
		*p.into = stmt
		st.all = append(st.all, stmt)
	}
	for _, p := range []struct {
		into **sql.Stmt
		text string
	}{
		{&st.get, full + " WHERE i.id = ?"},
		{&st.counts, "SELECT n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11 FROM totals"},
	} {
		stmt, err := s.read.PrepareContext(ctx, p.text)
		if err != nil {
			return err
		}
		*p.into = stmt
		st.all = append(st.all, stmt)
	}
	return st.version.QueryRowContext(ctx).Scan(&s.writer.version)
}

func (st *statements) close() error {
	var errs []error
	for _, stmt := range st.all {
		errs = append(errs, stmt.Close())
	}
	return errors.Join(errs...)
}
