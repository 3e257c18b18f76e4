package generation

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/catalogd/catalogd/internal/egress"
	"github.com/catalogd/catalogd/internal/upstream"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Probed says whether a trusted HTTP server answers.
type Probed struct {
	Server string
	Pos    problem.Position
	// Origin is scheme, host and port of its URL.
	Origin string
	// Status is that of its answer, whatever it says about the request; 0 if Err has why there was none.
	Status int
	// Lead is by how much this machine's clock is ahead of the server's, to a second; meaningful if Dated.
	Lead  time.Duration
	Dated bool
	Err   error
}

// Probe asks each trusted HTTP server for its URL, with no declared header, so that no secret leaves, and within
// timeout. Any answer counts. Servers that are not trusted are not contacted, and no redirect is followed.
func (g *Generation) Probe(ctx context.Context, timeout time.Duration) []Probed {
	var servers []registry.Server
	for _, s := range g.registry.Servers() {
		if _, trusted := g.servers[s.Name]; trusted && s.HTTP != nil {
			servers = append(servers, s)
		}
	}
	asked := make([]Probed, len(servers))
	var asking sync.WaitGroup
	for i, s := range servers {
		asked[i] = Probed{Server: s.Name, Pos: s.Pos}
		asking.Go(func() { g.probe(ctx, s, &asked[i], timeout) })
	}
	asking.Wait()
	return asked
}

func (g *Generation) probe(ctx context.Context, s registry.Server, p *Probed, timeout time.Duration) {
	target, problems := upstream.Target(s, "")
	if len(problems) > 0 {
		p.Err = problems.Err()
		return
	}
	p.Origin = fmt.Sprintf("%s://%s:%d", target.URL.Scheme, target.URL.Host, target.URL.Port)
	client, err := egress.Client(g.servers[p.Server], target, egress.ClientConfig{ConnectTimeout: timeout})
	if err != nil {
		p.Err = err
		return
	}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.HTTP.URL, nil)
	if err != nil {
		p.Err = withoutURL(err)
		return
	}
	resp, err := client.Transport.RoundTrip(req) // which follows no redirect, and does not read where it leads
	if err != nil {
		p.Err = beforeAnswer(err)
		return
	}
	answered := time.Now()
	p.Status = resp.StatusCode
	if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		p.Lead, p.Dated = answered.Sub(date).Truncate(time.Second), true
	}
	resp.Body.Close() // an event stream has no end; only the head was asked for
}

// ProbedOrigin says whether a host that trusted http tools reach accepts connections.
type ProbedOrigin struct {
	// Origin is scheme, host and port.
	Origin string
	// Tools are those that reach it, by name.
	Tools []string
	// Err is why no connection was made, or its TLS failed.
	Err error
}

// probesAtOnce caps the connections that ProbeTools makes at a time.
const probesAtOnce = 64

// ProbeTools connects once to each origin of the trusted http tools, within timeout, with a TLS handshake for https.
// No request is sent. An origin is in the result more than once where trust entries let other addresses of it be
// reached. What is not trusted is not contacted.
func (g *Generation) ProbeTools(ctx context.Context, timeout time.Duration) []ProbedOrigin {
	var found []ProbedOrigin
	var first []Reach // of each
	known := map[string]int{}
	for _, r := range g.reaches {
		if r.Kind != "tool" || r.Target.URL == nil || !r.Decision.Allow ||
			egress.Check(r.granted, r.Target, r.Observed.InTree) != nil {
			continue
		}
		key := r.Target.URL.Origin() + " " + strings.Join(r.granted.Addresses(), " ")
		i, ok := known[key]
		if !ok {
			i = len(found)
			known[key], found, first = i, append(found, ProbedOrigin{Origin: r.Target.URL.Origin()}), append(first, r)
		}
		found[i].Tools = append(found[i].Tools, r.Name)
	}
	turns := make(chan struct{}, probesAtOnce)
	var asking sync.WaitGroup
	for i, r := range first {
		turns <- struct{}{}
		asking.Go(func() {
			defer func() { <-turns }()
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			found[i].Err = egress.Connect(ctx, r.granted, r.Target)
		})
	}
	asking.Wait()
	return found
}

// errNotHTTP stands for what is wrong with an answer: such an error quotes it, and a server can repeat the URL there.
var errNotHTTP = errors.New("it closed the connection, or its answer is not valid HTTP")

// beforeAnswer returns an error that came about before an answer, without the URL, and errNotHTTP for every other one.
func beforeAnswer(err error) error {
	err = withoutURL(err)
	var address *egress.AddressError
	var outside *egress.OutsideError
	var dns *net.DNSError
	var network *net.OpError
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	if errors.As(err, &address) || errors.As(err, &outside) || errors.As(err, &dns) || errors.As(err, &network) ||
		errors.As(err, &certificate) || errors.As(err, &record) || errors.As(err, &alert) ||
		errors.Is(err, http.ErrSchemeMismatch) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return errNotHTTP
}

// withoutURL returns an error without the URL, whose query may hold a secret.
func withoutURL(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}
