package binding

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// retry says when a read is sent again. Its zero value never does.
type retry struct {
	max           int
	wait, longest time.Duration
	statuses      []int
}

func newRetry(c *check, field string, h *registry.HTTP) (r retry) {
	d := h.Retry
	if d == nil {
		return r
	}
	r = retry{max: d.Max, statuses: d.Statuses}
	if c.tool.Effect != registry.Read {
		c.errorf(problem.BadBinding, field, `retry is for tools with effect: "read"; a write is an intent, which is attempted again only with idempotent: true; take retry away`)
	} else if !bodyless(h.Method) && !c.tool.Idempotent {
		c.errorf(problem.BadBinding, field, "a %s may do something twice; declare the tool idempotent: true, or take retry away", h.Method)
	}
	if d.Max < 1 || d.Max > 10 {
		c.errorf(problem.BadBinding, field+".max", "%d is not a number of retries from 1 to 10", d.Max)
	}
	r.wait, r.longest = c.wait(field+".wait", d.Wait), c.wait(field+".maxWait", d.MaxWait)
	if r.longest < r.wait {
		c.errorf(problem.BadBinding, field+".maxWait", "maxWait (%s) is shorter than wait (%s)", d.MaxWait, d.Wait)
	}
	for i, status := range d.Statuses {
		if status < 400 || status > 599 || slices.Index(d.Statuses, status) != i || slices.Contains(h.Success, status) {
			c.errorf(problem.BadBinding, fmt.Sprintf("%s.statuses.%d", field, i), "%d is not a status of an error from 400 to 599, named once and not in success", status)
		}
	}
	return r
}

func (c *check) wait(field, text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || d > time.Hour {
		c.errorf(problem.BadBinding, field, `%q is not a duration above zero and of at most an hour; write one such as "250ms"`, text)
	}
	return d
}

// send sends a request, and again as far as retry says. The error is a *registry.Error, or that of ctx.
func (h *httpInvoker) send(ctx context.Context, client *http.Client, to registry.Listener, build func() (*http.Request, error)) (*http.Response, error) {
	for sent := 0; ; sent++ {
		req, err := build()
		if err != nil {
			return nil, err
		}
		res, err := client.Do(req)
		if err != nil {
			if of := (*url.Error)(nil); errors.As(err, &of) {
				of.URL, _, _ = strings.Cut(of.URL, "?") // its query may hold a secret
			}
			err = h.failure(ctx, err)
		}
		if sent >= h.retry.max || !h.retry.again(res, err) {
			return res, err
		}
		wait := h.retry.backoff(sent)
		if res != nil {
			wait = max(wait, retryAfter(res, time.Now()))
		}
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= wait {
			return res, err // the answer that there is says more than that the time is up
		}
		if res != nil {
			// The rest of a short answer is read so that its connection is used again.
			if _, err := io.CopyN(io.Discard, res.Body, maxTail); err != nil && !errors.Is(err, io.EOF) {
				client.CloseIdleConnections()
			}
			res.Body.Close()
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		case <-timer.C:
		}
		if to.Retried != nil {
			to.Retried()
		}
	}
}

// again reports whether an answer, or the want of one, is a reason to ask once more.
func (r retry) again(res *http.Response, err error) bool {
	if err == nil {
		return slices.Contains(r.statuses, res.StatusCode)
	}
	var known *registry.Error
	return errors.As(err, &known) && known.Code == registry.Unavailable
}

// backoff returns the wait before the next request after so many: twice as long each time, of which a half is
// random, so that callers don't come back together.
func (r retry) backoff(sent int) time.Duration {
	wait := min(r.wait<<min(sent, 20), r.longest)
	if wait <= 0 {
		wait = r.longest
	}
	return wait/2 + rand.N(wait/2+1)
}

// retryAfter returns how long the service asks to wait (RFC 9110, 10.2.3); zero where it doesn't say.
func retryAfter(res *http.Response, now time.Time) time.Duration {
	value := strings.TrimSpace(res.Header.Get("Retry-After"))
	// A number that is too large for an int is the largest.
	if seconds, err := strconv.Atoi(value); (err == nil || errors.Is(err, strconv.ErrRange)) && seconds >= 0 {
		return time.Duration(min(seconds, 1<<30)) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}
