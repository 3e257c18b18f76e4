package egress_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/decision/trusttest"
	"github.com/catalogd/catalogd/internal/egress"
)

func httpTarget(t testing.TB, declared string) trust.Target {
	t.Helper()
	u, err := egress.ParseURL(declared)
	if err != nil {
		t.Fatal(err)
	}
	return trust.Target{Kind: trust.HTTP, URL: &u}
}

var loopback = trust.Terms{Addresses: []string{"127.0.0.0/8", "::1"}}

func client(t *testing.T, declared string, terms trust.Terms) *http.Client {
	t.Helper()
	target := httpTarget(t, declared)
	c, err := egress.Client(trusttest.New(target, terms), target, egress.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func parseURL(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ declared, want string }{
		{"https://api.example.com/weather/{city}{?units}", "https://api.example.com:443 /weather/ template"},
		{"http://API.Example.com:8080", "http://api.example.com:8080 /"},
		{"https://x.example/a%20b?k={v}", "https://x.example:443 /a%20b"},
		{"https://x.example/a{?q}", "https://x.example:443 /a"},
		{"https://x.example{?q}", "https://x.example:443 /"},
		{"https://x.example{/seg}", "https://x.example:443 / template"},
		{"http://[::1]:9/x", "http://::1:9 /x"},
		{"http://[2001:DB8:0::1]/x", "http://2001:db8::1:80 /x"},
		{"http://127.0.0.1/x", "http://127.0.0.1:80 /x"},
		{"x.example/a", "error: must begin with"},
		{"/a", "error: must begin with"},
		{"", "error: must begin with"},
		{"{scheme}://x/", "error: must begin with"},
		{"file:///etc/passwd", "error: not http"},
		{"gopher://x/", "error: not http"},
		{"https://{host}/a", "error: are fixed"},
		{"https://api.{host}/a", "error: are fixed"},
		{"https://x.example:{port}/a", "error: are fixed"},
		{"https://x.example{x}", "error: are fixed"},
		{"https://user:pw@x.example/", "error: user information"},
		{"https://x.example@evil.example/", "error: user information"},
		{"https://x.example/a#b", "error: fragment"},
		{"https:///a", "error: no host"},
		{"https://x.example:/a", "error: port is empty"},
		{"https://x.example:0/a", "error: port"},
		{"https://x.example:99999/a", "error: port"},
		{"https://x.example:http/a", "error: port"},
		{"https://x.example./a", "error: ends with a dot"},
		{"https://127.1/", "error: looks like an IPv4"},
		{"https://0x7f000001/", "error: looks like an IPv4"},
		{"https://2130706433/", "error: looks like an IPv4"},
		{"https://0177.0.0.1/", "error: looks like an IPv4"},
		{"https://[::ffff:127.0.0.1]/", "error: wraps an IPv4"},
		{"https://[fe80::1%25eth0]/", "error: percent"},
		{"https://%65xample.com/", "error: invalid URL escape"},
		{"https://bücher.example/", "error: ASCII"},
		{"https://x.example/a/../b", "error: . or .."},
		{"https://x.example/a/%2e%2E/b", "error: . or .."},
		{"https://x.example/a/..%2fb", "error: . or .."},
		{"https://x.example/\x7f", "error: not a URL"},
	} {
		got := ""
		u, err := egress.ParseURL(tt.declared)
		if err != nil {
			got = "error: " + err.Error()
		} else {
			got = u.Origin() + " " + u.Path
			if u.Template {
				got += " template"
			}
		}
		wantErr, isErr := strings.CutPrefix(tt.want, "error: ")
		if isErr && (err == nil || !strings.Contains(got, wantErr)) || !isErr && got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.declared, got, tt.want)
		}
	}
}

func within(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		template, u string
		ok          bool
	}{
		{"https://x.example/v1/{id}", "https://x.example/v1/7", true},
		{"https://x.example/v1/{id}", "https://X.example:443/v1/a%2Fb?q=..", true},
		{"https://x.example/v1/{id}", "https://x.example/v1", false},
		{"https://x.example/v1/{id}", "https://x.example/v2/7", false},
		{"https://x.example/v1/{id}", "https://x.example/v1/../v2", false},
		{"https://x.example/v1/{id}", "https://x.example/v1/..%2fv2", false},
		{"https://x.example/v1/{id}", "https://x.example/v1/%252e%252e/v2", false},
		{"https://x.example/v1/{id}", `https://x.example/v1/..%5cv2`, false},
		{"https://x.example/v1/{id}", "https://x.example/v1/..;a=b/v2", false},
		{"https://x.example/v1/{id}", "https://x.example/v1/a..b/...", true},
		{"https://x.example/v1/{id}", "http://x.example/v1/7", false},
		{"https://x.example/v1/{id}", "https://x.example:8443/v1/7", false},
		{"https://x.example/v1/{id}", "https://y.example/v1/7", false},
		{"https://x.example/v1/{id}", "https://u@x.example/v1/7", false},
		{"https://x.example/mcp", "https://x.example/mcp?a=b", true},
		{"https://x.example/mcp", "https://x.example/mcp/", false},
		{"https://x.example", "https://x.example", true},
		{"http://127.0.0.1:80/mcp", "http://127.0.0.1:80/mcp?a=b", true},
		{"http://127.0.0.1:80/mcp", "http://u@127.0.0.1:80/mcp", false},
		{"http://127.0.0.1:80/mcp", "https://127.0.0.1:80/mcp", false},
		{"http://127.0.0.1:80/mcp", "http://127.0.0.1:8080/mcp", false},
		{"http://127.0.0.1:80/mcp", "http://127.0.0.1:80/mcp/..", false},
		{"http://127.0.0.1:80/mcp", "http://127.0.0.1:80/mc%70", false},
		{"http://127.0.0.1:80/mcp/{id}", "http://127.0.0.1:80/mcp/", true},
	} {
		u, err := url.Parse(tt.u)
		if err != nil {
			t.Fatal(err)
		}
		if err := egress.Within(*httpTarget(t, tt.template).URL, u); (err == nil) != tt.ok {
			t.Errorf("%s in %s: %v", tt.u, tt.template, err)
		}
	}
}

func clientNeedsTrust(t *testing.T) {
	t.Parallel()
	target := httpTarget(t, "https://x.example/a")
	for name, tr := range map[string]trust.Trust{
		"zero": {}, "another": trusttest.New(httpTarget(t, "https://x.example/b"), trust.Terms{}),
		"a broken range": trusttest.New(target, trust.Terms{Addresses: []string{"10.0.0.0/64"}}),
	} {
		if _, err := egress.Client(tr, target, egress.ClientConfig{}); err == nil {
			t.Errorf("%s trust made a client", name)
		}
	}
}

func clientReachesOnlyNamedAddresses(t *testing.T) {
	t.Parallel()
	var hits atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { hits.Add(1); io.WriteString(w, "hello") }))
	defer server.Close()

	// An address that stands in the URL is known before anything is dialled, so there is no client at all.
	target := httpTarget(t, server.URL+"/a")
	_, err := egress.Client(trusttest.New(target, trust.Terms{Entry: "local"}), target, egress.ClientConfig{})
	var refused *egress.AddressError
	if !errors.As(err, &refused) || refused.Entry != "local" || !strings.Contains(err.Error(), `addresses: ["127.0.0.1/32"]`) {
		t.Errorf("loopback without leave: %v", err)
	}
	// By a name that resolves to it, too.
	byName := strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
	if _, err := client(t, byName+"/a", trust.Terms{Addresses: []string{"10.0.0.0/8"}}).Get(byName + "/a"); !errors.As(err, &refused) {
		t.Errorf("localhost without leave: %v", err)
	}
	if n := hits.Load(); n != 0 {
		t.Fatalf("%d requests got through", n)
	}
	for _, base := range []string{server.URL, byName} {
		res, err := client(t, base+"/a", loopback).Get(base + "/a")
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || string(b) != "hello" {
			t.Errorf("got %q, %v", b, err)
		}
	}
}

func publicAddresses(t *testing.T) {
	t.Parallel()
	for address, public := range map[string]bool{
		"8.8.8.8": true, "1.1.1.1": true, "2606:4700::1111": true, "172.32.0.1": true, "100.128.0.1": true, "::ffff:8.8.8.8": true,
		"127.0.0.1": false, "127.255.255.254": false, "10.1.2.3": false, "172.16.0.1": false, "192.168.1.1": false, "169.254.169.254": false,
		"100.64.0.1": false, "0.0.0.0": false, "0.1.2.3": false, "224.0.0.1": false, "255.255.255.255": false, "192.0.0.8": false, "198.18.0.1": false,
		"::": false, "::1": false, "fe80::1": false, "fc00::1": false, "fd00:ec2::254": false, "ff02::1": false, "64:ff9b::7f00:1": false,
		"64:ff9b:1::1": false, "2002:7f00:1::": false, "2001::1": false, "2001:db8::1": false, "::ffff:127.0.0.1": false, "::127.0.0.1": false, "5f00::1": false,
	} {
		if got := egress.Public(netip.MustParseAddr(address)); got != public {
			t.Errorf("%s: public %v, want %v", address, got, public)
		}
	}
}

func redirectsStay(t *testing.T) {
	t.Parallel()
	var canary atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { canary.Add(1) }))
	defer other.Close()
	mux := http.NewServeMux()
	mux.HandleFunc("/in/ok", func(w http.ResponseWriter, r *http.Request) { b, _ := io.ReadAll(r.Body); w.Write(append(b, '!')) })
	mux.HandleFunc("/out/", func(http.ResponseWriter, *http.Request) { canary.Add(1) })
	mux.HandleFunc("/in/{to}", func(w http.ResponseWriter, r *http.Request) {
		to := map[string]string{
			"near": "/in/ok", "loop": "/in/loop", "host": other.URL + "/in/ok", "path": "/out/x", "dots": "/in/../out/x",
			"scheme": "file:///etc/passwd", "localhost": strings.Replace(other.URL, "127.0.0.1", "localhost", 1) + "/in/ok", "tls": "https://" + r.Host + "/in/ok",
		}[r.PathValue("to")]
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	c := client(t, server.URL+"/in/{x}", loopback)
	for to, want := range map[string]string{
		"near": "", "loop": "stopped after 5", "host": "not the trusted origin", "path": "not below", "dots": "not below",
		"scheme": "not http or https", "localhost": "not the trusted origin", "tls": "not the trusted origin",
	} {
		res, err := c.Post(server.URL+"/in/"+to, "text/plain", strings.NewReader("body"))
		if err == nil {
			b, _ := io.ReadAll(res.Body)
			res.Body.Close()
			if want == "" && string(b) == "body!" {
				continue
			}
		}
		if want == "" || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", to, err, want)
		}
	}
	if n := canary.Load(); n != 0 {
		t.Errorf("%d requests left the target", n)
	}
	req, err := http.NewRequest("GET", server.URL+"/in/ok", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "internal.example"
	if _, err := c.Do(req); err == nil || !strings.Contains(err.Error(), "Host header") {
		t.Errorf("another Host header: %v", err)
	}
}

// redirectsAreDecidedAnew: another path of the same origin is followed where the decision lets it, and asked about
// exactly; another origin is never asked about.
func redirectsAreDecidedAnew(t *testing.T) {
	t.Parallel()
	var there atomic.Int32
	mux := http.NewServeMux()
	mux.HandleFunc("/a", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusFound)
	})
	mux.HandleFunc("/", func(_ http.ResponseWriter, r *http.Request) {
		there.Add(1)
		if from := r.Referer(); from != "" {
			t.Errorf("the request says that it comes from %s", from)
		}
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	other := httptest.NewServer(mux)
	defer other.Close()
	target := httpTarget(t, server.URL+"/a")
	target.Headers = []string{"Authorization"}
	var asked []string
	terms := loopback
	terms.Headers = target.Headers
	c, err := egress.Client(trusttest.New(target, terms), target, egress.ClientConfig{
		Redirect: func(_ context.Context, to trust.Target) error {
			asked = append(asked, fmt.Sprint(to.URL.Path, to.Headers))
			if to.URL.Path != "/b" {
				return errors.New("not decided")
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"/b", "/b?x=a b", "/c", "/b/../c", other.URL + "/b", "http://user@" + strings.TrimPrefix(server.URL, "http://") + "/b"} {
		res, err := c.Get(server.URL + "/a?to=" + url.QueryEscape(to))
		if err == nil {
			res.Body.Close()
		}
		if follow := strings.HasPrefix(to, "/b") && to != "/b/../c"; (err == nil) != follow {
			t.Errorf("%s: %v", to, err)
		}
	}
	if diff := cmp.Diff([]string{"/b[Authorization]", "/b[Authorization]", "/c[Authorization]", "/c[Authorization]"}, asked); diff != "" {
		t.Error(diff)
	}
	if there.Load() != 2 {
		t.Errorf("%d redirects followed, want 2", there.Load())
	}
}

func noProxyAndOldTLS(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("http_proxy", "http://127.0.0.1:1")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
	defer server.Close()
	res, err := client(t, server.URL+"/", loopback).Get(server.URL + "/")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()

	for version, ok := range map[uint16]bool{tls.VersionTLS11: false, tls.VersionTLS12: true} {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
		server.TLS = &tls.Config{MaxVersion: version}
		server.StartTLS()
		pool := x509.NewCertPool()
		pool.AddCert(server.Certificate())
		target := httpTarget(t, server.URL+"/")
		tr := trusttest.New(target, loopback)
		c, err := egress.Client(tr, target, egress.ClientConfig{TLS: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS10}})
		if err != nil {
			t.Fatal(err)
		}
		res, err := c.Get(server.URL + "/")
		if (err == nil) != ok {
			t.Errorf("TLS %x: %v", version, err)
		}
		if err == nil {
			res.Body.Close()
		}
		strict, err := egress.Client(tr, target, egress.ClientConfig{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := strict.Get(server.URL + "/"); err == nil {
			t.Error("an unknown certificate was accepted")
		}
		server.Close()
	}
}
