package catalogd

import (
	"cmp"
	"context"
	"time"

	"github.com/catalogd/catalogd/internal/daemon"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/mcpserver"
)

// Intents says how calls of tools with a side effect are recorded and executed. Each call is recorded as an
// intent before it is executed; docs/effects.md says what that guarantees.
type Intents struct {
	// Dir holds the store: a directory of mode 0700, on a local disk. Empty means a directory of the
	// catalog's in Config.State; without that, tools with a side effect are refused.
	Dir string
	// Durability is what an answered call survives: "power", a loss of power, or "process", the death of the
	// process alone, which is faster. Empty means "power".
	Durability string
	// Wait is how long a call waits for its effect before it is answered with a handle. Zero means
	// DefaultWait, a negative value does not wait.
	Wait time.Duration
	// MaxAge, MaxCount and MaxBytes limit how long intents that have ended are kept, MaxResult is the largest
	// result in bytes that is kept with one. Zero fields mean 30 days, 1,000,000, 1 GiB and 1 MiB.
	MaxAge              time.Duration
	MaxCount            int
	MaxBytes, MaxResult int64
}

// DefaultWait is how long a call waits for its effect. It is below the timeouts of common clients.
const DefaultWait = 30 * time.Second

func (c *Catalog) newEffects(cfg Config) (*daemon.Effects, error) {
	store, err := cfg.store()
	if err != nil {
		return nil, err
	}
	return daemon.NewEffects(daemon.EffectsConfig{
		Store: store, Wait: max(0, cmp.Or(cfg.Intents.Wait, DefaultWait)),
		Pin:    func() (*generation.Generation, func()) { return c.daemon.Pin() },
		Tokens: c.tokens, Log: cfg.Log,
	}), nil
}

// closeEffects lets running effects end, within the time that calls have to drain.
func (c *Catalog) closeEffects() {
	ctx, cancel := context.WithTimeout(context.Background(), mcpserver.Drain)
	defer cancel()
	if err := c.effects.Close(ctx); err != nil {
		c.log.Error("the store of intents could not be closed", "error", err)
	}
}
