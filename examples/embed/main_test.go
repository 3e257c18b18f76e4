package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/registry"
)

func opened(t *testing.T) *catalogd.Catalog {
	t.Helper()
	c, err := open(t.Context(), filepath.Join(t.TempDir(), "intents"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestGreet(t *testing.T) {
	c := opened(t)
	if got, err := greet(t.Context(), c, "Ada"); err != nil || got != "Hello, Ada!" {
		t.Errorf("greet(Ada): got %q, %v, want Hello, Ada!", got, err)
	}
	if got, err := greet(t.Context(), c, "Mallory"); err == nil {
		t.Errorf("greet(Mallory): got %q, want a refusal of the policy", got)
	}
	if got, err := greet(t.Context(), c, "ada"); err == nil {
		t.Errorf("greet(ada): got %q, want a refusal of the contract", got)
	}
}

func TestGuestBook(t *testing.T) {
	b := opened(t).Branch("default")
	sign := func(b catalogd.Branch, args string) (g guest, err error) {
		call, err := b.Call(t.Context(), "sign_book", []byte(args))
		if err != nil {
			t.Fatal(err)
		}
		return g, call.Decode(&g)
	}
	for range 2 { // the second is the same call again
		if _, err := sign(b.Keyed("first"), `{"name": "Ada"}`); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := sign(b, `{"name": "Ada"}`); err == nil {
		t.Error("Ada has signed twice")
	}
	var refused *registry.Error
	if _, err := sign(b, `{"name": "ada"}`); !errors.As(err, &refused) || refused.Code != registry.InvalidArguments {
		t.Errorf("sign(ada): got %v, want a refusal of the declaration in CUE", err)
	}
	call, err := b.Call(t.Context(), "list_guests", nil)
	if err != nil {
		t.Fatal(err)
	}
	var listed guestList
	if err := call.Decode(&listed); err != nil || listed.Total != 1 || listed.Guests[0].Name != "Ada" {
		t.Errorf("got %+v, %v, want Ada once", listed, err)
	}
}

func TestCatalogHasNoProblems(t *testing.T) {
	cfg, err := config(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if problems, err := catalogd.Check(t.Context(), cfg); err != nil || len(problems) > 0 {
		t.Errorf("got the problems %v, %v, want none", problems, err)
	}
	report, err := catalogd.TestPolicy(t.Context(), cfg, "")
	if err != nil || len(report.Tests) != 3 || !report.Passed() {
		t.Errorf("got %+v, %v, want 3 tests that pass", report.Tests, err)
	}
}

func TestRun(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, filepath.Join(t.TempDir(), "intents"), ln) }()
	resp, err := http.Get("http://" + ln.Addr().String() + "/branches") // the listener queues it until run serves
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("/branches: got %s, want 200", resp.Status)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("run: got %v at its end, want nil", err)
	}
}
