package egress_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/egress"
)

// zone is a name server of its own, which answers what the test says.
type zone struct {
	mu      sync.Mutex
	answers map[string][]string
	asked   map[string]int
	// next, where set, makes the answer to a name's n-th question, from 0.
	next func(name string, n int) []string
}

// resolve makes the zone the system's resolver until the test ends.
func (z *zone) resolve(t *testing.T) {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	system := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		// With a resolver of its own: a question may outlive the test, which sets the default one back.
		return (&net.Dialer{Resolver: system}).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
	t.Cleanup(func() {
		net.DefaultResolver = system
		server.Close()
	})
	go func() {
		packet := make([]byte, 1500)
		for {
			n, from, err := server.ReadFrom(packet)
			if err != nil {
				return
			}
			if answer := z.answer(packet[:n]); answer != nil {
				// A lost answer is asked for again.
				_, _ = server.WriteTo(answer, from)
			}
		}
	}()
}

func (z *zone) answer(packet []byte) []byte {
	var m dnsmessage.Message
	if m.Unpack(packet) != nil || len(m.Questions) != 1 {
		return nil
	}
	q := m.Questions[0]
	m.Response, m.Authoritative, m.Additionals = true, true, nil
	found := z.find(strings.TrimSuffix(q.Name.String(), "."), q.Type)
	if found == nil {
		m.RCode = dnsmessage.RCodeNameError
	}
	for _, text := range found {
		ip := netip.MustParseAddr(text)
		header := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: 0}
		switch {
		case ip.Is4() && q.Type == dnsmessage.TypeA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: ip.As4()}})
		case ip.Is6() && q.Type == dnsmessage.TypeAAAA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AAAAResource{AAAA: ip.As16()}})
		}
	}
	out, err := m.Pack()
	if err != nil {
		return nil
	}
	return out
}

// find counts a name's questions by those of one type, for each lookup asks for both.
func (z *zone) find(name string, asked dnsmessage.Type) []string {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.asked == nil {
		z.asked = map[string]int{}
	}
	n := z.asked[name+asked.String()]
	z.asked[name+asked.String()]++
	if z.next != nil {
		return z.next(name, n)
	}
	return z.answers[name]
}

func (z *zone) says(next func(name string, n int) []string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.next = next
}

func (z *zone) questions(name string) int {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.asked[name+dnsmessage.TypeA.String()]
}

// canary is a service on loopback that counts who reaches it.
func canary(t *testing.T) (port string, hits *atomic.Int32) {
	t.Helper()
	hits = new(atomic.Int32)
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	t.Cleanup(server.Close)
	return server.URL[strings.LastIndex(server.URL, ":")+1:], hits
}

// A name that resolves into any range that is not public is not dialled, however the address is written.
func everyRangeBehindAName(t *testing.T) {
	port, hits := canary(t)
	z := &zone{}
	z.resolve(t)
	for _, address := range []string{
		"10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.0.1", "127.0.0.1", "127.1.2.3", "169.254.169.254", "100.64.0.1", "100.127.255.255",
		"0.0.0.0", "0.0.0.1", "224.0.0.1", "255.255.255.255", "198.18.0.1",
		"::1", "::", "fc00::1", "fdff::1", "fe80::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "ff02::1",
	} {
		z.says(func(string, int) []string { return []string{address} })
		url := "http://service.example:" + port + "/"
		_, err := client(t, url, trust.Terms{Entry: "service"}).Get(url)
		var refused *egress.AddressError
		if !errors.As(err, &refused) || refused.Entry != "service" {
			t.Errorf("%s: %v", address, err)
		}
		if refused != nil && refused.Address != netip.MustParseAddr(address).Unmap() {
			t.Errorf("%s: the refusal names %s", address, refused.Address)
		}
	}
	if n := hits.Load(); n != 0 {
		t.Errorf("%d requests reached the canary", n)
	}
}

// A name that is looked at with one address and dialled with another is refused by the one that is dialled; of several
// addresses the named ones are dialled alone.
func answerThatFlips(t *testing.T) {
	port, hits := canary(t)
	z := &zone{next: func(_ string, n int) []string {
		if n == 0 {
			return []string{"8.8.8.8"}
		}
		return []string{"127.0.0.1"}
	}}
	z.resolve(t)
	url := "http://flips.example:" + port + "/"
	target := httpTarget(t, url)
	observer := new(egress.Observer)
	observer.Begin(t.Context(), []string{target.URL.Host})
	if got := observer.Observe(target, "").Addresses; !slices.Equal(got, []string{"8.8.8.8"}) {
		t.Fatalf("observed %v", got)
	}
	var refused *egress.AddressError
	if _, err := client(t, url, trust.Terms{Entry: "service"}).Get(url); !errors.As(err, &refused) || refused.Address != netip.MustParseAddr("127.0.0.1") {
		t.Errorf("dialled: %v", err)
	}
	if n := hits.Load(); n != 0 {
		t.Fatalf("%d requests reached the canary", n)
	}

	z.says(func(string, int) []string { return []string{"10.255.255.1", "127.0.0.1", "192.168.255.1"} })
	res, err := client(t, url, trust.Terms{Addresses: []string{"127.0.0.1/32"}}).Get(url)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if n := hits.Load(); n != 1 {
		t.Errorf("%d requests reached the service", n)
	}
}

// localhost, which may be reached in the clear, is this machine even where a resolver says otherwise and a trust entry names
// the range.
func localhostIsLoopback(t *testing.T) {
	port, hits := canary(t)
	z := &zone{answers: map[string][]string{"mcp.localhost": {"10.0.0.1", "8.8.8.8"}, "here.localhost": {"127.0.0.1"}}}
	z.resolve(t)
	anywhere := trust.Terms{Addresses: []string{"0.0.0.0/0", "::/0"}}
	url := "http://mcp.localhost:" + port + "/"
	if _, err := client(t, url, anywhere).Get(url); err == nil || !strings.Contains(err.Error(), "is not loopback") {
		t.Errorf("localhost elsewhere: %v", err)
	}
	url = "http://here.localhost:" + port + "/"
	res, err := client(t, url, anywhere).Get(url)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if hits.Load() != 1 {
		t.Error("localhost was not reached")
	}
}

// What a host resolves to is sorted, each address once, kept for a while; what does not resolve is empty and asked again.
func observedAddresses(t *testing.T) {
	z := &zone{answers: map[string][]string{"many.example": {"9.9.9.9", "2606:4700::1111", "8.8.8.8", "9.9.9.9", "::ffff:8.8.8.8"}}}
	z.resolve(t)
	observer := new(egress.Observer)
	look := func(host string) []string {
		observer.Begin(t.Context(), []string{host, host})
		return observer.Observe(trust.Target{Kind: trust.HTTP, URL: &trust.URL{Scheme: "https", Host: host}}, "").Addresses
	}
	for range 3 {
		if got, want := look("many.example"), []string{"2606:4700::1111", "8.8.8.8", "9.9.9.9"}; !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	if n := z.questions("many.example"); n != 1 {
		t.Errorf("asked %d times", n)
	}
	if got := look("gone.example"); len(got) != 0 {
		t.Errorf("a name that is not there: %v", got)
	}
	z.mu.Lock()
	z.answers["gone.example"] = []string{"8.8.4.4"}
	z.mu.Unlock()
	if got := look("gone.example"); !slices.Equal(got, []string{"8.8.4.4"}) {
		t.Errorf("a name that has come: %v", got)
	}
	for _, address := range []string{"127.0.0.1", "2606:4700::1111"} {
		if got := look(address); !slices.Equal(got, []string{address}) {
			t.Errorf("an address: %v", got)
		}
	}
}
