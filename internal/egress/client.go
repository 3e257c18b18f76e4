package egress

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/catalogd/catalogd/decision/trust"
)

// minTLS is the lowest version of TLS that is spoken, as a decision sees it and as the package tls calls it.
const (
	minTLS     = "1.2"
	minVersion = tls.VersionTLS12
)

const (
	// maxRedirects is how many redirects one request follows.
	maxRedirects = 5
	// maxResponseHeader is how many bytes the head of a response may have.
	maxResponseHeader = 256 << 10
	// idleTime is how long an unused connection is kept.
	idleTime = 90 * time.Second
	// defaultConnectTimeout bounds one connection attempt, and one TLS handshake, by default.
	defaultConnectTimeout = 10 * time.Second
)

// ClientConfig is what a caller may choose about a client. The zero value is ready for use.
type ClientConfig struct {
	// MaxConnections caps the connections to the host; 0 means no cap.
	MaxConnections int
	// Idle is how many unused connections are kept for the next requests: as many as run at once, or each
	// request beyond that number is a new connection. 0 means MaxConnections, or 16 without.
	Idle int
	// ConnectTimeout bounds one connection attempt; 0 means 10 s. A request is bounded by its context alone.
	ConnectTimeout time.Duration
	// Redirect is asked where an answer redirects to another path of the same origin, and refuses by an
	// error; nil refuses every such redirect. To another origin none is followed.
	Redirect func(ctx context.Context, to trust.Target) error
	// TLS adds to the client's TLS settings, such as a private root; nil means the system's. The minimum is
	// TLS 1.2.
	TLS *tls.Config
	// Once is for requests with a side effect: each is sent at most once, over a connection of its own, and
	// no redirect is followed. An error below which there is no *UnsentError says nothing of whether the
	// request was received.
	Once bool
}

// Client returns an HTTP client that reaches the target and nothing else. It refuses requests outside of the
// target's origin and path, redirects that leave the origin (or the path, unless cfg.Redirect allows it), and
// connections to addresses that are neither public nor named by tr. It uses no proxy, keeps no cookies and
// needs no closing; CloseIdleConnections closes unused connections.
func Client(tr trust.Trust, target trust.Target, cfg ClientConfig) (*http.Client, error) {
	if err := Check(tr, target, false); err != nil {
		return nil, err
	}
	if target.URL == nil {
		return nil, fmt.Errorf("a target of kind %q has no URL to dial", target.Kind)
	}
	filter, err := newAddressFilter(tr.Name(), target.URL.Host, tr.Addresses())
	if err != nil {
		return nil, err
	}
	if cfg.ConnectTimeout <= 0 {
		cfg.ConnectTimeout = defaultConnectTimeout
	}
	idle := cmp.Or(cfg.Idle, cfg.MaxConnections, 16)
	tlsConfig := &tls.Config{}
	if cfg.TLS != nil {
		tlsConfig = cfg.TLS.Clone()
	}
	tlsConfig.MinVersion = max(tlsConfig.MinVersion, minVersion)
	tlsConfig.InsecureSkipVerify = false
	dialer := &net.Dialer{Timeout: cfg.ConnectTimeout, KeepAlive: 30 * time.Second, Control: filter.control}
	guard := &guard{target: target, entry: tr.Name(), again: cfg.Redirect}
	if target.URL.Scheme == "http" && !cfg.Once {
		clear := &http1Transport{dial: onlyTCP(dialer)}
		if cfg.MaxConnections > 0 {
			clear.turns = make(chan struct{}, cfg.MaxConnections)
		}
		guard.next = clear
		return &http.Client{Transport: guard, CheckRedirect: fewRedirects}, nil
	}
	transport := newTransport(dialer, tlsConfig)
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = idle, idle
	transport.MaxConnsPerHost = cfg.MaxConnections
	if cfg.Once {
		if tlsConfig.ClientSessionCache == nil {
			// A handshake that resumes a session is shorter. It carries no early data, which could be
			// replayed: Go sends none.
			tlsConfig.ClientSessionCache = tls.NewLRUClientSessionCache(0)
		}
		guard.next = newOnceTransport(transport, cfg.MaxConnections)
		return &http.Client{Transport: guard, CheckRedirect: noRedirect}, nil
	}
	guard.next = transport
	return &http.Client{Transport: guard, CheckRedirect: fewRedirects}, nil
}

// newTransport returns a transport that asks no proxy. The dialer's timeout bounds the TLS handshake too.
func newTransport(dialer *net.Dialer, tlsConfig *tls.Config) *http.Transport {
	return &http.Transport{
		Proxy:                  nil,
		DialContext:            onlyTCP(dialer),
		TLSClientConfig:        tlsConfig,
		TLSHandshakeTimeout:    dialer.Timeout,
		ForceAttemptHTTP2:      true,
		IdleConnTimeout:        idleTime,
		MaxResponseHeaderBytes: maxResponseHeader,
	}
}

// onlyTCP is the dialer's DialContext for TCP, and refuses every other network.
func onlyTCP(d *net.Dialer) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		switch network {
		case "tcp", "tcp4", "tcp6":
			return d.DialContext(ctx, network, address)
		}
		return nil, fmt.Errorf("network %q is not dialled", network)
	}
}

// transport sends requests: an http1Transport, an onceTransport or an http.Transport.
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
		if req.Response == nil {
			err = &UnsentError{err}
		}
		return nil, err
	}
	resp, err := g.next.RoundTrip(req)
	if err == nil && resp.StatusCode == http.StatusSwitchingProtocols {
		resp.Body.Close() // the connection, which speaks another protocol from here on
		return nil, errSwitchingProtocols
	}
	return resp, err
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

// redirected decides anew on a redirect that leaves the target's path and stays on its origin. outside is
// what it is refused with otherwise.
func (g *guard) redirected(req *http.Request, outside error) error {
	to, err := ParseURL(req.URL.Scheme + "://" + req.URL.Host + req.URL.EscapedPath())
	if err != nil || to.Origin() != g.target.URL.Origin() || g.again == nil {
		return outside
	}
	if err := Within(to, req.URL); err != nil {
		return err
	}
	return g.again(req.Context(), trust.Target{Kind: g.target.Kind, URL: &to, Headers: g.target.Headers, FromCall: g.target.FromCall, Secrets: g.target.Secrets})
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

// fewRedirects limits how many redirects a request follows; guard checks where each leads. No Referer is sent: it would
// repeat the query, which may hold a secret.
func fewRedirects(req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fmt.Errorf("stopped after %d redirects", maxRedirects)
	}
	req.Header.Del("Referer")
	req.URL.RawQuery = strings.ReplaceAll(req.URL.RawQuery, " ", "%20") // which would end the target of the request
	return nil
}

// noRedirect returns a redirect to the caller as the response.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// CloseIdleConnections drops the connections that are open and unused.
func (g *guard) CloseIdleConnections() { g.next.CloseIdleConnections() }
