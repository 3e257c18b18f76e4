package intent_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/catalogd/catalogd/internal/intent"
	"github.com/catalogd/catalogd/internal/intent/attempt"
	"github.com/catalogd/catalogd/registry"
)

// TestInternalErrorsAreLogged: an error that refers callers to the operator's log has its details there, also where nobody waits.
func TestInternalErrorsAreLogged(t *testing.T) {
	t.Parallel()
	panics := allowed(func(context.Context, attempt.Attempt) intent.Ran { panic("boom") })
	for name, begin := range map[string]intent.Begin{
		"the tool": panics,
		"the release": func(context.Context, intent.Intent) intent.Turn {
			return intent.Turn{End: func() {}, Refused: &registry.Error{Code: registry.Internal, Msg: "internal error", Err: errors.New("panic: boom")}}
		},
	} {
		var log bytes.Buffer
		b := openBench(t, filepath.Join(t.TempDir(), "intents"), func(c *intent.EffectorConfig) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		s := submission(begin, func(s *intent.Submission) { s.Wait = 0 })
		if _, err := b.Submit(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		b.Settle(t.Context())
		if in, err := b.Await(t.Context(), intent.Intent{ID: s.Intent.ID}, time.Minute); err != nil || !in.State.Ended() || strings.Contains(in.Message, "boom") {
			t.Errorf("%s: %+v, %v", name, in, err)
		}
		if text := log.String(); strings.Count(text, "panic: boom") != 1 || !strings.Contains(text, s.Intent.ID) {
			t.Errorf("%s: the log has %s", name, text)
		}
	}
}
