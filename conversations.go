package catalogd

import (
	"errors"
	"fmt"

	"github.com/catalogd/catalogd/internal/buildcache"
	"github.com/catalogd/catalogd/internal/conversation"
)

// conversations opens the store of conversation branches: in the state directory, else in memory.
func (c Config) conversations(state bool) (*conversation.Store, error) {
	cfg := conversation.Config{Log: c.Log}
	if state && !c.Once {
		root, err := c.root()
		if err != nil {
			return nil, err
		}
		cfg.Dir = buildcache.Conversations(c.State, root)
	}
	store, err := conversation.Open(cfg)
	if errors.Is(err, conversation.ErrInUse) {
		c.Log.Info("another process serves this catalog too, which is fine: it keeps the catalog's conversation branches, "+
			"and those that are made here end with this process", "kept", cfg.Dir)
		return conversation.Open(conversation.Config{Log: c.Log})
	}
	if err != nil {
		return nil, fmt.Errorf("the conversation branches can't be read: %w; name another directory with --state, or keep "+
			"nothing with --state none", err)
	}
	return store, nil
}
