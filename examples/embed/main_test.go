package main

import (
	"context"
	"net"
	"net/http"
	"testing"

	"github.com/catalogd/catalogd"
)

func TestGreet(t *testing.T) {
	c, err := open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
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

func TestCatalogHasNoProblems(t *testing.T) {
	dir := t.TempDir()
	c, err := open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	cfg := catalogd.Config{Dir: dir}
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
	go func() { ended <- run(ctx, t.TempDir(), ln) }()
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
