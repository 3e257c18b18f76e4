package decisionlog

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/catalogd/catalogd/internal/egress"
)

// Collector is a Sink that posts events to a service as OPA does: a JSON array of them, compressed with gzip.
// The service is the operator's own choice (egress.OperatorClient); no policy is asked about it.
type Collector struct {
	url    string
	header string // Authorization
	client *http.Client
}

// NewCollector returns a Collector that posts to the URL, which must be https, or http on this machine.
// authorization is sent in the header of that name unless it is empty. Redirects are not followed.
func NewCollector(address, authorization string) (*Collector, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil {
		return nil, fmt.Errorf("%q is not the URL of a collector, such as https://logs.example.com/logs", address)
	}
	ip, notIP := netip.ParseAddr(u.Hostname())
	here := u.Hostname() == "localhost" || notIP == nil && ip.IsLoopback()
	if u.Scheme != "https" && !(u.Scheme == "http" && here) {
		return nil, errors.New("a collector is reached by https; http is for one on this machine")
	}
	client, err := egress.OperatorClient(u, postTimeout)
	if err != nil {
		return nil, err
	}
	return &Collector{url: address, header: authorization, client: client}, nil
}

// postTimeout bounds one request to a collector with its response.
const postTimeout = 10 * time.Second

// Previous implements Sink.
func (*Collector) Previous() Previous { return Previous{} }

// Write implements Sink.
func (c *Collector) Write(ctx context.Context, lines []byte) error {
	var body bytes.Buffer
	zip := gzip.NewWriter(&body)
	array := append([]byte{'['}, bytes.ReplaceAll(bytes.TrimSuffix(lines, []byte("\n")), []byte("\n"), []byte(","))...)
	_, err := zip.Write(append(array, ']'))
	if err := errors.Join(err, zip.Close()); err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, &body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Content-Encoding", "gzip")
	if c.header != "" {
		req.Header.Set("Authorization", c.header)
	}
	return egress.Deliver(c.client, req)
}

// Close implements Sink.
func (c *Collector) Close() error {
	c.client.CloseIdleConnections()
	return nil
}
