package main

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/catalogd/catalogd/registry"
)

// book is the guest book of this program. Its methods are tools: catalog/guests.cue declares them.
type book struct {
	mu     sync.Mutex
	guests []guest
	signed map[string]guest // by idempotency key
}

type guest struct {
	Name string `json:"name"`
	Note string `json:"note,omitempty"`
}

type listArgs struct {
	Limit int    `json:"limit" jsonschema:"How many guests to list." minimum:"1" maximum:"100" default:"10"`
	Order string `json:"order" jsonschema:"Who comes first." enum:"latest,first" default:"latest"`
}

type guestList struct {
	Guests []guest `json:"guests"`
	Total  int     `json:"total"`
}

// ListGuests only reads, so it runs when it is called.
func (b *book) ListGuests(_ context.Context, in listArgs) (guestList, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	guests := slices.Clone(b.guests)
	if in.Order == "latest" {
		slices.Reverse(guests)
	}
	return guestList{guests[:min(in.Limit, len(guests))], len(guests)}, nil
}

type signArgs struct {
	Name string `json:"name" jsonschema:"Who signs."`
	Note string `json:"note,omitempty" jsonschema:"What they have to say."`
}

// SignBook changes something, so each call is an intent with a key, and a repetition is known by it.
func (b *book) SignBook(ctx context.Context, in signArgs) (guest, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := registry.RunOf(ctx).IdempotencyKey
	if g, again := b.signed[key]; again {
		return g, nil
	}
	g := guest(in)
	if slices.ContainsFunc(b.guests, func(other guest) bool { return other.Name == g.Name }) {
		return guest{}, registry.NotDone(registry.Fail("duplicate", fmt.Errorf("%s has signed already", g.Name)))
	}
	b.guests, b.signed[key] = append(b.guests, g), g
	return g, nil
}

// functions are the Go functions that declarations may name.
func (b *book) functions() ([]*registry.Function, error) {
	list, err := registry.Func("", b.ListGuests, registry.Read)
	if err != nil {
		return nil, err
	}
	sign, err := registry.Func("", b.SignBook, registry.Write,
		registry.Setup(func(context.Context) error { b.signed = map[string]guest{}; return nil }))
	if err != nil {
		return nil, err
	}
	return []*registry.Function{list, sign}, nil
}
