package catalogd_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"testing/fstest"

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
	// summarize_numbers read
	// system_info read
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

type place struct {
	City  string `json:"city" jsonschema:"The city to look up."`
	Units string `json:"units" enum:"celsius,fahrenheit" default:"celsius"`
}

type forecast struct {
	City    string `json:"city"`
	Degrees int    `json:"degrees"`
}

func getWeather(_ context.Context, in place) (forecast, error) {
	if in.City == "Atlantis" {
		return forecast{}, registry.Fail("not_found", fmt.Errorf("there is no city %q", in.City))
	}
	return forecast{in.City, map[string]int{"celsius": 7, "fahrenheit": 45}[in.Units]}, nil
}

// declared is a catalog with the starter's policy, in memory, whose tool is a Go function.
func declared() fs.FS {
	files := fstest.MapFS{"catalog/weather.cue": {Data: []byte(`package catalog

tools: weather: {
	description: "The weather in a city."
	effect:      "read"
	binding: func: "get_weather"
}
branches: default: {}
`)}}
	err := fs.WalkDir(catalogd.Starter(), "policy", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(catalogd.Starter(), name)
		files[name] = &fstest.MapFile{Data: data}
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	module, err := fs.ReadFile(catalogd.Starter(), "cue.mod/module.cue")
	if err != nil {
		log.Fatal(err)
	}
	files["cue.mod/module.cue"] = &fstest.MapFile{Data: module}
	return files
}

// Make a tool of a Go function, and call it.
func ExampleConfig_functions() {
	weather, err := registry.Func("", getWeather, registry.Read)
	if err != nil {
		log.Fatal(err) // it names the field that can't be described
	}
	c, err := catalogd.New(context.Background(), catalogd.Config{FS: declared(), Functions: []*registry.Function{weather}})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	for _, args := range []string{`{"city": "Oslo"}`, `{"city": "Atlantis"}`, `{"city": "Oslo", "units": "kelvin"}`} {
		call, err := c.Branch("default").Call(context.Background(), "weather", []byte(args))
		if err != nil {
			log.Fatal(err)
		}
		var got forecast
		if err := call.Decode(&got); err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(got.City, got.Degrees)
	}
	// Output:
	// Oslo 7
	// not_found: there is no city "Atlantis"
	// invalid_arguments: the arguments of "weather" are not valid:
	// - /units: got the string "kelvin", expected one of "celsius", "fahrenheit"
}

// Describe functions to commands that do not have them: catalogd check --functions FILE.
func ExampleConfig_functionsDescribed() {
	weather, err := registry.Func("", getWeather, registry.Read)
	if err != nil {
		log.Fatal(err)
	}
	data, err := json.MarshalIndent([]*registry.Function{weather}, "", "  ")
	if err != nil {
		log.Fatal(err)
	}
	var described []registry.Descriptor
	if err := json.Unmarshal(data, &described); err != nil {
		log.Fatal(err)
	}
	fmt.Println(described[0].Name, described[0].Effect, described[0].Description)
	fmt.Println(json.Unmarshal(data, new([]registry.Function)) != nil)
	// Output:
	// get_weather read Get weather.
	// true
}

// Look at arguments and results of every tool.
func ExampleConfig_processors() {
	weather, err := registry.Func("", getWeather, registry.Read)
	if err != nil {
		log.Fatal(err)
	}
	c, err := catalogd.New(context.Background(), catalogd.Config{
		FS: declared(), Functions: []*registry.Function{weather},
		Processors: []registry.Processor{{
			Tools: []string{"weather*"},
			Before: func(_ context.Context, _ string, args json.RawMessage) (json.RawMessage, error) {
				if strings.Contains(string(args), "Oz") {
					return nil, registry.Fail("off_the_map", errors.New("nobody goes there"))
				}
				return args, nil
			},
			After: func(_ context.Context, tool string, result json.RawMessage) (json.RawMessage, error) {
				fmt.Println(tool, "answered", string(result))
				return result, nil
			},
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	for _, args := range []string{`{"city": "Rome"}`, `{"city": "Oz"}`} {
		call, err := c.Branch("default").Call(context.Background(), "weather", []byte(args))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(call.Text())
	}
	// Output:
	// weather answered {"city":"Rome","degrees":7}
	// {"city":"Rome","degrees":7}
	// a processor of the program refused the arguments: off_the_map: nobody goes there. Nothing was run
}

// Import the servers of another client's configuration.
func ExampleImport() {
	imported, err := catalogd.Import([]byte(`{"mcpServers": {"files": {"command": "mcp-files", "args": ["/srv"]}}}`),
		catalogd.ImportConfig{File: ".mcp.json"})
	if err != nil {
		log.Fatal(err)
	}
	for _, server := range imported.Servers {
		fmt.Println(server.Name, server.Position)
	}
	// Output:
	// files .mcp.json:1:17
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
