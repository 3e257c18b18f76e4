package egress_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/catalogd/catalogd/internal/egress"
)

// The operator's client reaches the origin that it was made for, and nothing else.
func TestOperatorClient(t *testing.T) {
	t.Parallel()
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path)
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "/target", http.StatusFound)
		}
	}))
	defer server.Close()
	origin, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	client, err := egress.OperatorClient(origin, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	for _, tt := range []struct {
		url    string
		status int    // 0: an error
		err    string // a part of it
	}{
		{server.URL + "/logs", http.StatusOK, ""},
		{server.URL + "/moved", http.StatusFound, ""}, // not followed
		{"https://" + origin.Host + "/", 0, "is not the operator's"},
		{"http://127.0.0.1:1/", 0, "is not the operator's"},
	} {
		resp, err := client.Post(tt.url, "text/plain", strings.NewReader("x"))
		if tt.status == 0 {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("POST %s: got error %v, want one with %q", tt.url, err, tt.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("POST %s: %v", tt.url, err)
			continue
		}
		if resp.Body.Close(); resp.StatusCode != tt.status {
			t.Errorf("POST %s: got status %d, want %d", tt.url, resp.StatusCode, tt.status)
		}
	}
	if got, want := strings.Join(asked, " "), "/logs /moved"; got != want {
		t.Errorf("the server was asked for %q, want %q", got, want)
	}
}

// In the clear the operator's client connects to loopback addresses alone, whatever a name says.
func TestOperatorClientInTheClear(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"http://192.0.2.1:1/":     "not an address of this machine",
		"http://[2001:db8::1]:1/": "not an address of this machine",
		"http:///logs":            "no host",
		"ftp://127.0.0.1/":        "not http or https",
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		client, err := egress.OperatorClient(u, 5*time.Second)
		if err == nil {
			_, err = client.Get(address)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want one with %q", address, err, want)
		}
	}
}
