package catalogd

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
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

// A key that anybody knows or could guess seals nothing, and nor does one that can't be read.
func TestStateKey(t *testing.T) {
	t.Parallel()
	name := func(mode os.FileMode, bytes int) string {
		file := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(file, []byte(strings.Repeat("k", bytes)), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, mode); err != nil { // whatever the umask is
			t.Fatal(err)
		}
		return file
	}
	for file, want := range map[string]string{
		"":                                    "",
		name(0o600, 32):                       "",
		name(0o440, 64):                       "",
		name(0o604, 32):                       "open to every user",
		name(0o600, 31):                       "has 31 bytes",
		name(0o600, 5000):                     "has 5000 bytes",
		filepath.Join(t.TempDir(), "missing"): "can't be read",
	} {
		key, err := Config{RequestStateKey: file}.stateKey()
		if want == "" && (err != nil || (file == "") != (key == nil)) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %d bytes, %v, want %q", file, len(key), err, want)
		}
	}
	for _, ttl := range []time.Duration{-1, 25 * time.Hour} {
		if _, err := (Config{Dir: ".", ListTTL: ttl}).withDefaults(); err == nil || !strings.Contains(err.Error(), "from 0 to 24h") {
			t.Errorf("%v: %v", ttl, err)
		}
	}
}
