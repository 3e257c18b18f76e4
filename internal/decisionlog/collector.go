package decisionlog

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

// Collector is a Sink that posts events to a service as OPA does: a JSON array of them, compressed with gzip. The service
// is the operator's own choice, made on the command line; no policy is asked about it.
type Collector struct {
	url    string
	header string // Authorization
	client *http.Client
}

// NewCollector posts to the URL, which must be https, or http to this machine. authorization is sent as that header where
// it is not empty. Redirects are not followed.
func NewCollector(address, authorization string) (*Collector, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil {
		return nil, fmt.Errorf("%q is no URL of a collector, such as https://logs.example.com/logs", address)
	}
	ip, notIP := netip.ParseAddr(u.Hostname())
	here := u.Hostname() == "localhost" || notIP == nil && ip.IsLoopback()
	if u.Scheme != "https" && !(u.Scheme == "http" && here) {
		return nil, errors.New("a collector is reached by https; http is for one on this machine")
	}
	return &Collector{url: address, header: authorization, client: &http.Client{
		Timeout:       10 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

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
	resp, err := c.client.Do(req)
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

// Close implements Sink.
func (c *Collector) Close() error {
	c.client.CloseIdleConnections()
	return nil
}
