package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/internal/httpapi"
	"github.com/catalogd/catalogd/internal/intent"
)

// remoteIntents accesses the intents of a daemon over its HTTP API (docs/intents-api.md).
type remoteIntents struct{ base *url.URL }

func newRemoteIntents(server string) (remoteIntents, error) {
	base, err := url.Parse(server)
	if err != nil || base.Host == "" {
		return remoteIntents{}, notURL(server)
	}
	return remoteIntents{base}, nil
}

func (r remoteIntents) list(ctx context.Context, f catalogd.IntentFilter) (page httpapi.IntentPage, err error) {
	query := url.Values{"limit": {strconv.Itoa(f.Limit)}}
	for name, value := range map[string]string{"branch": f.Branch, "tool": f.Tool, "principal": f.Principal} {
		if value != "" {
			query.Set(name, value)
		}
	}
	for _, s := range f.States {
		query.Add("state", string(s))
	}
	if f.Before != 0 {
		query.Set("before", strconv.FormatInt(f.Before, 10))
	}
	at := r.base.JoinPath("intents")
	at.RawQuery = query.Encode()
	return page, r.get(ctx, at, &page)
}

// longestPoll is how long one request waits, less than the time after which idle connections are cut.
const longestPoll = 20 * time.Second

func (r remoteIntents) show(ctx context.Context, id string, wait time.Duration) (s httpapi.ShownIntent, err error) {
	for over := time.Now().Add(wait); ; {
		left := max(0, min(time.Until(over), longestPoll))
		at := r.base.JoinPath("intents", id)
		if left > 0 {
			at.RawQuery = "wait=" + strconv.Itoa(int((left+time.Second-1)/time.Second))
		}
		if err := r.get(ctx, at, &s); err != nil || s.State.Ended() || left == 0 {
			return s, err
		}
	}
}

func (r remoteIntents) act(ctx context.Context, id string, action intent.Action, why, as string) (s httpapi.ShownIntent, err error) {
	body := map[string]string{}
	if why != "" {
		body["why"] = why
	}
	if as != "" {
		body["as"] = as
	}
	return s, r.post(ctx, r.base.JoinPath("intents", id, string(action)), body, &s)
}

func (r remoteIntents) get(ctx context.Context, at *url.URL, into any) error {
	return r.ask(ctx, http.MethodGet, at, http.NoBody, into)
}

// post sends a request with body, without one if it is nil.
func (r remoteIntents) post(ctx context.Context, at *url.URL, body map[string]string, into any) error {
	if body == nil {
		return r.ask(ctx, http.MethodPost, at, http.NoBody, into)
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return r.ask(ctx, http.MethodPost, at, bytes.NewReader(raw), into)
}

func (r remoteIntents) ask(ctx context.Context, method string, at *url.URL, body io.Reader, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, at.String(), body)
	if err != nil {
		return err
	}
	if body != http.NoBody {
		req.Header.Set("Content-Type", "application/json")
	}
	raw, status, err := ask(req)
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		var a answer
		if json.Unmarshal(raw, &a) != nil {
			return fmt.Errorf("%s answered with status %d, which is not an answer of catalogd", at, status)
		}
		return fmt.Errorf("%s://%s answered with status %d: %s", at.Scheme, at.Host, status, a.reason(raw))
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("reading the daemon's answer: %w", err)
	}
	return nil
}
