// Command embed is a program with a tool catalog and a policy of its own, which it serves over MCP beside its
// other handlers: go run ./examples/embed, and then connect a client to
// http://127.0.0.1:8421/branches/default/mcp.
package main

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/decision"
)

//go:embed catalog policy cue.mod
var files embed.FS

func main() {
	// The compile worker is this program, started again, so that a catalog that never finishes evaluating
	// costs a child process and not this one.
	if len(os.Args) == 2 && os.Args[1] == "compile-worker" {
		os.Exit(catalogd.CompileWorker(os.Stdin, os.Stdout))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	dir, err := os.MkdirTemp("", "embed")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ln, err := net.Listen("tcp", "127.0.0.1:8421")
	if err != nil {
		log.Print(err)
		return
	}
	if err := run(ctx, dir, ln, "compile-worker"); err != nil {
		log.Print(err)
	}
}

// run writes the catalog into dir and serves it on ln until ctx ends.
func run(ctx context.Context, dir string, ln net.Listener, worker ...string) error {
	catalog, err := open(ctx, dir, worker...)
	if err != nil {
		return err
	}
	defer catalog.Close()
	greeting, err := greet(ctx, catalog, "Ada")
	if err != nil {
		return err
	}
	log.Print(greeting)
	return catalog.Serve(ctx, ln)
}

// open writes the catalog into dir, with the schema of the catalogd that this program links, and opens it.
// worker are the arguments that make this program a compile worker; without any it evaluates CUE itself.
func open(ctx context.Context, dir string, worker ...string) (*catalogd.Catalog, error) {
	if err := errors.Join(
		os.CopyFS(dir, files),
		os.WriteFile(filepath.Join(dir, "schema.cue"), catalogd.Schema(), 0o600),
	); err != nil {
		return nil, fmt.Errorf("writing the catalog: %w", err)
	}
	return catalogd.New(ctx, catalogd.Config{Dir: dir, Worker: worker, Version: "embed"})
}

// greet calls a tool in this process, as a principal that the program vouches for.
func greet(ctx context.Context, catalog *catalogd.Catalog, name string) (string, error) {
	who := decision.Principal{Name: "embed", Groups: []string{"staff"}}
	args := fmt.Appendf(nil, `{"name": %q}`, name)
	call, err := catalog.Branch("default").As(who).Call(ctx, "greet", args)
	if err != nil {
		return "", err
	}
	if call.Err != nil {
		return "", call.Err
	}
	var text struct{ Text string } // a content block of MCP
	err = json.Unmarshal(call.Result.Content[0], &text)
	return text.Text, err
}
