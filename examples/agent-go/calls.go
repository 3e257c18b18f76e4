package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
)

// calls reaches the branch at a URL over HTTP, in the provider's own form: catalogd takes the model's message
// as it is, and answers the messages that the model wants next.
type calls struct{ branch string }

func (c calls) offer(ctx context.Context) (json.RawMessage, error) {
	var offer struct{ Tools json.RawMessage }
	url := c.branch + "/tools?dialect=openai"
	err := send(ctx, http.MethodGet, url, os.Getenv("CATALOGD_TOKEN"), nil, &offer)
	return offer.Tools, err
}

func (c calls) run(ctx context.Context, r reply) (results []result, err error) {
	err = send(ctx, http.MethodPost, c.branch+"/calls", os.Getenv("CATALOGD_TOKEN"), r.raw, &results)
	return results, err
}
