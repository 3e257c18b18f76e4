package main

import (
	"errors"
	"time"

	"github.com/catalogd/catalogd"
)

// intentFlags configure where the intents of calls with a side effect are stored.
type intentFlags struct {
	Intents    string `placeholder:"DIR" help:"Record calls with a side effect, before they are executed, in this directory of mode 0700; by default a folder of the catalog's in the state directory."`
	Durability string `enum:"power,process" default:"power" help:"What the record of such a call survives: power, a loss of power; process, which is faster, only the end of the process."`
}

func (f intentFlags) set(cfg *catalogd.Config) {
	cfg.Intents.Dir, cfg.Intents.Durability = f.Intents, f.Durability
}

// keptIntentFlags configure how long a daemon keeps intents, and how long their callers wait.
type keptIntentFlags struct {
	intentFlags
	Wait            time.Duration `default:"30s" help:"How long a call waits for its side effect before it is answered with a handle; 0 answers at once."`
	IntentsMaxAge   time.Duration `default:"720h" help:"Delete records of calls with a side effect that ended longer ago than this."`
	IntentsMaxCount int           `default:"1000000" help:"Delete the oldest ended ones beyond this number."`
	IntentsMaxBytes int64         `default:"1073741824" help:"Delete the oldest ended ones beyond this number of bytes."`
	MaxStoredResult int64         `default:"1048576" placeholder:"BYTES" help:"Store only the digest of a larger result; its caller gets it whole."`
}

func (f keptIntentFlags) set(cfg *catalogd.Config) error {
	f.intentFlags.set(cfg)
	if f.IntentsMaxAge <= 0 || f.IntentsMaxCount <= 0 || f.IntentsMaxBytes <= 0 || f.MaxStoredResult <= 0 {
		return errors.New("--intents-max-age, --intents-max-count, --intents-max-bytes and --max-stored-result must be more than 0")
	}
	cfg.Intents.MaxAge, cfg.Intents.MaxCount = f.IntentsMaxAge, f.IntentsMaxCount
	cfg.Intents.MaxBytes, cfg.Intents.MaxResult = f.IntentsMaxBytes, f.MaxStoredResult
	return setWait(cfg, f.Wait)
}

// setWait sets how long calls wait; 0 disables waiting.
func setWait(cfg *catalogd.Config, wait time.Duration) error {
	switch {
	case wait < 0:
		return errors.New("--wait must not be negative")
	case wait == 0:
		wait = -1
	}
	cfg.Intents.Wait = wait
	return nil
}
