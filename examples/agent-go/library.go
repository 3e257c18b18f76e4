package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/contract/dialect"
	"github.com/catalogd/catalogd/registry"
)

// library reaches a branch of a catalog that this program opens itself, without a daemon. A program that
// opens catalogs of others gives Config a Worker, as examples/embed does.
type library struct {
	catalog *catalogd.Catalog
	branch  catalogd.Branch
}

func open(ctx context.Context, dir, branch string) (library, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return library{}, err
	}
	catalog, err := catalogd.New(ctx, catalogd.Config{
		Dir: dir,
		// Calls of tools with a side effect are recorded here; without it they are refused.
		Intents: catalogd.Intents{Dir: filepath.Join(cache, "agent-go")},
	})
	if err != nil {
		return library{}, err
	}
	return library{catalog, catalog.Branch(branch).In(dialect.OpenAI)}, nil
}

func (l library) offer(context.Context) (json.RawMessage, error) {
	offer, err := l.branch.Offer(registry.All())
	if err != nil {
		return nil, err
	}
	return json.Marshal(offer.Tools)
}

func (l library) run(ctx context.Context, r reply) (results []result, err error) {
	raw, err := l.branch.Act(ctx, r.raw, catalogd.ActOrder{})
	return results, errors.Join(err, json.Unmarshal(raw, &results))
}

// Close ends the catalog, once the side effects that it has begun have ended.
func (l library) Close() error {
	defer l.catalog.Close()
	return l.catalog.Intents().Settle(context.Background())
}
