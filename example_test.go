package catalogd_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/contract/dialect"
	"github.com/catalogd/catalogd/registry"
)

// Open the catalog of this repository, and list a branch.
func ExampleNew() {
	c, err := catalogd.New(context.Background(), catalogd.Config{Dir: "."})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	tools, err := c.Branch("research").Tools()
	if err != nil {
		log.Fatal(err)
	}
	for _, tool := range tools {
		fmt.Println(tool.Name, tool.Effect)
	}
	// Output:
	// convert_temperature read
	// current_time read
	// intent_cancel read
	// intent_get read
	// intent_list read
	// summarize_numbers read
	// system_info read
	// write_note write
}

// A catalog that isn't fit to serve is refused with every problem, each with its position.
func ExampleNew_refused() {
	dir, err := os.MkdirTemp("", "catalog")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	err = errors.Join(
		os.CopyFS(dir, catalogd.Starter()),
		os.WriteFile(dir+"/catalog/broken.cue", []byte("package catalog\n\ntools: broken: efect: \"read\"\n"), 0o600),
	)
	if err != nil {
		log.Fatal(err)
	}
	_, err = catalogd.New(context.Background(), catalogd.Config{Dir: dir})
	var refused *catalogd.RefusedError
	if errors.As(err, &refused) {
		for _, p := range refused.Problems {
			fmt.Println(p.Position, p.Code, p.Path)
		}
	}
	// Output:
	// catalog/broken.cue:3:8 missing_field tools.broken.binding
	// catalog/broken.cue:3:8 missing_field tools.broken.description
	// catalog/broken.cue:3:8 missing_field tools.broken.effect
	// catalog/broken.cue:3:16 unknown_field tools.broken.efect
}

// Call a tool, on the path that calls over MCP take too.
func ExampleBranch_Call() {
	c, err := catalogd.New(context.Background(), catalogd.Config{Dir: "."})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	for _, args := range []string{`{"title": "Hello, world"}`, `{"titel": "Hello"}`} {
		call, err := c.Branch("default").Call(context.Background(), "slugify", []byte(args))
		if err != nil {
			log.Fatal(err) // there is no such branch
		}
		if call.Err != nil {
			fmt.Println(call.Err)
			continue
		}
		fmt.Printf("%s\n", call.Result.Content[0])
	}
	// Output:
	// {"type":"text","text":"hello-world"}
	// invalid_arguments: the arguments of "slugify" are not valid:
	// - /titel: got an unexpected key with the string "Hello", expected only separator, title; did you mean "title"?
	// - /title: got nothing, expected a string, at least 1 character long, at most 200 characters long (required)
}

// Offer tools to a model, in the form of its provider.
func ExampleBranch_Offer() {
	c, err := catalogd.New(context.Background(), catalogd.Config{Dir: "."})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	offer, err := c.Branch("default").In(dialect.Anthropic).Offer(registry.Names("slugify"))
	if err != nil {
		log.Fatal(err)
	}
	var tool struct {
		Name   string
		Schema struct{ Required []string } `json:"input_schema"`
	}
	if err := json.Unmarshal(offer.Tools[0], &tool); err != nil {
		log.Fatal(err)
	}
	fmt.Println(tool.Name, tool.Schema.Required)
	// Output:
	// slugify [title]
}

// Serve all branches over MCP, and the HTTP API.
func ExampleCatalog_Serve() {
	ctx, stop := context.WithCancel(context.Background())
	c, err := catalogd.New(ctx, catalogd.Config{Dir: "."})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	served := make(chan error)
	go func() { served <- c.Serve(ctx, ln) }()

	resp, err := http.Get("http://" + ln.Addr().String() + "/healthz")
	if err != nil {
		log.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		log.Fatal(err)
	}
	resp.Body.Close()
	fmt.Println(resp.Status, strings.TrimSpace(string(body)))

	stop()
	fmt.Println(<-served)
	// Output:
	// 200 OK ok
	// <nil>
}
