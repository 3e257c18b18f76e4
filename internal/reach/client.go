package reach

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/catalogd/catalogd/decision/trust"
)

// minTLS is the lowest version of TLS that is spoken, as a decision sees it and as the package tls calls it.
const (
	minTLS     = "1.2"
	minVersion = tls.VersionTLS12
)

// maxRedirects is how many redirects one request follows.
const maxRedirects = 5

// ClientConfig is what a caller may choose about a client. The zero value is ready for use.
type ClientConfig struct {
	// MaxConnections caps the connections to the host; 0 means no cap.
	MaxConnections int
	// Idle is how many unused connections are kept for the next requests: as many as run at once, or each request beyond
	// that number is a new connection. 0 means MaxConnections, or 16 without.
	Idle int
	// ConnectTimeout bounds one connection attempt; 0 means 10 s. A request is bounded by its context alone.
	ConnectTimeout time.Duration
	// Redirect is asked where an answer redirects to another path of the same origin, and refuses by an error; nil refuses
	// every such redirect. To another origin none is followed.
	Redirect func(ctx context.Context, to trust.Target) error
	// TLS adds to the client's TLS settings, such as a private root; nil means the system's. The minimum is TLS 1.2.
	TLS *tls.Config
}

// Client is an HTTP client that reaches the target and nothing else: requests outside of its origin and path are
// refused, redirects that leave its origin too (and its path, unless cfg.Redirect lets them), and so is each connection to
// an address that is neither public nor named by tr. It asks no proxy, keeps no cookies and needs no closing; CloseIdleConnections drops what it keeps open.
func Client(tr trust.Trust, target trust.Target, cfg ClientConfig) (*http.Client, error) {
	if err := Check(tr, target); err != nil {
		return nil, err
	}
	if target.URL == nil {
		return nil, fmt.Errorf("a target of kind %q has no URL to dial", target.Kind)
	}
	fence, err := newFence(tr.Name(), target.URL.Host, tr.Addresses())
	if err != nil {
		return nil, err
	}
	if cfg.ConnectTimeout <= 0 {
		cfg.ConnectTimeout = 10 * time.Second
	}
	idle := cmp.Or(cfg.Idle, cfg.MaxConnections, 16)
	tlsConfig := &tls.Config{}
	if cfg.TLS != nil {
		tlsConfig = cfg.TLS.Clone()
	}
	tlsConfig.MinVersion = max(tlsConfig.MinVersion, minVersion)
	tlsConfig.InsecureSkipVerify = false
	dialer := &net.Dialer{Timeout: cfg.ConnectTimeout, KeepAlive: 30 * time.Second, Control: fence.control}
	guard := &guard{target: target, entry: tr.Name(), again: cfg.Redirect}
	if target.URL.Scheme == "http" {
		clear := &straight{dial: onlyTCP(dialer)}
		if cfg.MaxConnections > 0 {
			clear.turns = make(chan struct{}, cfg.MaxConnections)
		}
		guard.next = clear
		return &http.Client{Transport: guard, CheckRedirect: fewRedirects}, nil
	}
	guard.next = &http.Transport{
		Proxy:                  nil,
		DialContext:            onlyTCP(dialer),
		TLSClientConfig:        tlsConfig,
		TLSHandshakeTimeout:    cfg.ConnectTimeout,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           idle,
		MaxIdleConnsPerHost:    idle,
		MaxConnsPerHost:        cfg.MaxConnections,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: maxAnswerHeader,
	}
	return &http.Client{Transport: guard, CheckRedirect: fewRedirects}, nil
}

func onlyTCP(d *net.Dialer) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		switch network {
		case "tcp", "tcp4", "tcp6":
			return d.DialContext(ctx, network, address)
		}
		return nil, fmt.Errorf("network %q is not dialled", network)
	}
}

// transport is what sends requests: straight, or http.Transport.
type transport interface {
	http.RoundTripper
	CloseIdleConnections()
}

// guard lets only requests to the target through.
type guard struct {
	target trust.Target
	entry  string
	again  func(ctx context.Context, to trust.Target) error
	next   transport
}

func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := g.check(req); err != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, err
	}
	return g.next.RoundTrip(req)
}

func (g *guard) check(req *http.Request) error {
	err := Within(*g.target.URL, req.URL)
	if err != nil && req.Response != nil {
		if err = g.redirected(req, err); err != nil {
			err = fmt.Errorf("the answer redirects to a place that was not decided on: %w", err)
			return &OutsideError{Entry: g.entry, Err: err, Status: req.Response.StatusCode, To: req.URL}
		}
	}
	if err != nil {
		return &OutsideError{Entry: g.entry, Err: err}
	}
	// The Host header picks the site behind an address, so it may not name another one.
	if req.Host != "" && req.Host != req.URL.Host {
		return &OutsideError{Entry: g.entry, Err: fmt.Errorf("the Host header names %q", req.Host)}
	}
	return nil
}

// redirected decides anew on a redirect that leaves the target's path and stays on its origin. outside is what it is
// refused with otherwise.
func (g *guard) redirected(req *http.Request, outside error) error {
	to, err := ParseURL(req.URL.Scheme + "://" + req.URL.Host + req.URL.EscapedPath())
	if err != nil || to.Origin() != g.target.URL.Origin() || g.again == nil {
		return outside
	}
	if err := Within(to, req.URL); err != nil {
		return err
	}
	return g.again(req.Context(), trust.Target{Kind: g.target.Kind, URL: &to, Headers: g.target.Headers})
}

// OutsideError is the refusal of a request, or of a redirect, that leaves what the trust covers.
type OutsideError struct {
	// Entry is the trust entry that covers something else.
	Entry string
	Err   error
	// Status and To are a redirect's; zero for a request that was made like this.
	Status int
	To     *url.URL
}

func (e *OutsideError) Error() string {
	return fmt.Sprintf("outside of trust entry %q: %v", e.Entry, e.Err)
}

// Unwrap says what differs.
func (e *OutsideError) Unwrap() error { return e.Err }

// fewRedirects bounds how many redirects a request follows; where each leads is the guard's to check.
func fewRedirects(_ *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fmt.Errorf("stopped after %d redirects", maxRedirects)
	}
	return nil
}

// CloseIdleConnections drops the connections that are open and unused.
func (g *guard) CloseIdleConnections() { g.next.CloseIdleConnections() }
