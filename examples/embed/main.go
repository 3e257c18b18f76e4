// Command embed is a program with a tool catalog and a policy of its own, which it serves over MCP beside its
// other handlers: go run ./examples/embed, and then connect a client to
// http://127.0.0.1:8421/branches/default/mcp. Two of its tools are Go functions (guestbook.go).
package main

import (
	"context"
	"embed"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"

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
	intents, err := os.MkdirTemp("", "embed")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(intents)
	ln, err := net.Listen("tcp", "127.0.0.1:8421")
	if err != nil {
		log.Print(err)
		return
	}
	if err := run(ctx, intents, ln, "compile-worker"); err != nil {
		log.Print(err)
	}
}

// run serves the catalog on ln until ctx ends. intents is the directory in which calls that change something are recorded.
func run(ctx context.Context, intents string, ln net.Listener, worker ...string) error {
	catalog, err := open(ctx, intents, worker...)
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

// config is the embedded catalog with the functions of the program. worker are the arguments that make this program a
// compile worker; without any it evaluates CUE itself.
func config(intents string, worker ...string) (catalogd.Config, error) {
	functions, err := new(book).functions()
	return catalogd.Config{
		FS: files, Functions: functions, Intents: catalogd.Intents{Dir: intents}, Worker: worker, Version: "embed",
	}, err
}

func open(ctx context.Context, intents string, worker ...string) (*catalogd.Catalog, error) {
	cfg, err := config(intents, worker...)
	if err != nil {
		return nil, err
	}
	return catalogd.New(ctx, cfg)
}

// greet calls a tool in this process, as a principal that the program vouches for.
func greet(ctx context.Context, catalog *catalogd.Catalog, name string) (greeting string, err error) {
	who := decision.Principal{Name: "embed", Groups: []string{"staff"}}
	call, err := catalog.Branch("default").As(who).Call(ctx, "greet", fmt.Appendf(nil, `{"name": %q}`, name))
	if err != nil {
		return "", err // there is no such branch
	}
	err = call.Decode(&greeting) // the error of a call that failed is here
	return greeting, err
}
