package egress

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"
)

// OperatorClient returns a client for the one origin of a URL that the operator has named, on the command
// line or in the Config of a program that embeds catalogd: the collector of the decision log. It takes no
// Trust, because nothing in a catalog leads there.
//
// Requests to another origin are refused and no redirect is followed. TLS is at least 1.2 and verified; http
// in the clear reaches loopback addresses only, whatever a name resolves to. Unlike Client, it connects to
// any address over TLS, and through the proxy that the environment names (HTTPS_PROXY), as the environment is
// the operator's too. timeout bounds each request with its response.
func OperatorClient(origin *url.URL, timeout time.Duration) (*http.Client, error) {
	dialer := &net.Dialer{Timeout: defaultConnectTimeout, KeepAlive: 30 * time.Second}
	switch {
	case origin.Host == "":
		return nil, fmt.Errorf("the URL %s has no host", origin.Redacted())
	case origin.Scheme == "http":
		dialer.Control = loopbackOnly
	case origin.Scheme != "https":
		return nil, fmt.Errorf("the scheme %q is not http or https", origin.Scheme)
	}
	transport := newTransport(dialer, &tls.Config{MinVersion: minVersion})
	if origin.Scheme == "https" {
		transport.Proxy = http.ProxyFromEnvironment
	}
	return &http.Client{
		Timeout:       timeout,
		CheckRedirect: noRedirect,
		Transport:     &operatorTransport{transport, origin.Scheme, origin.Host},
	}, nil
}

// loopbackOnly is a net.Dialer's Control that refuses every address that is not loopback.
func loopbackOnly(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("address %q: %w", address, err)
	}
	if !at.Addr().Unmap().IsLoopback() {
		return fmt.Errorf("%s is not an address of this machine, and http in the clear reaches no other; use https", at.Addr())
	}
	return nil
}

// operatorTransport sends requests to one origin only.
type operatorTransport struct {
	*http.Transport
	scheme, host string
}

func (o *operatorTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme == o.scheme && req.URL.Host == o.host {
		return o.Transport.RoundTrip(req)
	}
	if req.Body != nil {
		req.Body.Close()
	}
	return nil, &UnsentError{fmt.Errorf("%s://%s is not the operator's %s://%s", req.URL.Scheme, req.URL.Host, o.scheme, o.host)}
}

// Deliver sends a request to a collector through an OperatorClient, and reads the answer, of which it needs
// nothing. A status other than 2xx is an error that names it.
func Deliver(client *http.Client, req *http.Request) error {
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	err = errors.Join(err, resp.Body.Close())
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fmt.Errorf("the collector answered status %d", resp.StatusCode)
	}
	return err
}
