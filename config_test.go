package catalogd_test

import (
	"log/slog"
	"testing"

	"github.com/catalogd/catalogd"
)

// TestTheWatchLogsWhereTheRestDoes: its one warning, that files are polled because there are no events, is not dropped for
// whoever gives a Log and leaves Timing as it is.
func TestTheWatchLogsWhereTheRestDoes(t *testing.T) {
	t.Parallel()
	log, other := slog.New(slog.DiscardHandler), slog.New(slog.DiscardHandler)
	cfg, err := catalogd.Config{Dir: t.TempDir(), Log: log}.WithDefaults()
	if err != nil || cfg.Timing.Logger != log {
		t.Errorf("%v, %v", cfg.Timing.Logger, err)
	}
	given := catalogd.Config{Dir: t.TempDir(), Log: log}
	given.Timing.Logger = other
	if cfg, err = given.WithDefaults(); err != nil || cfg.Timing.Logger != other {
		t.Errorf("%v, %v", cfg.Timing.Logger, err)
	}
}
