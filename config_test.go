package catalogd

import (
	"log/slog"
	"testing"
)

// TestWatchLogger: the warning that files are polled because there are no events goes to Config.Log, unless Timing has a
// Logger of its own.
func TestWatchLogger(t *testing.T) {
	t.Parallel()
	log, other := slog.New(slog.DiscardHandler), slog.New(slog.DiscardHandler)
	for _, test := range []struct {
		name               string
		log, logger, wants *slog.Logger
	}{
		{"Log alone", log, nil, log},
		{"Log and Timing.Logger", log, other, other},
	} {
		cfg := Config{Dir: t.TempDir(), Log: test.log}
		cfg.Timing.Logger = test.logger
		got, err := cfg.withDefaults()
		if err != nil || got.Timing.Logger != test.wants {
			t.Errorf("%s: got Timing.Logger %p, %v, want %p", test.name, got.Timing.Logger, err, test.wants)
		}
	}
}
