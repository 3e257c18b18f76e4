// Command agent-go is an agent: a model reasons and asks for tools, catalogd runs them, and the model reads
// what came of it, until it answers or its steps are used up. The model is behind OpenAI's Chat Completions
// API; without -provider a stand-in plays it from script.json. README.md says how to run it.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
)

// tools are the tools of a branch: what the model is offered, and how its calls are run.
type tools interface {
	// offer returns the tools as Chat Completions takes them.
	offer(ctx context.Context) (json.RawMessage, error)
	// run runs the calls of a reply, and returns a result for each. That a call fails is a result too: the
	// model reads it, and repairs its call.
	run(ctx context.Context, r reply) ([]result, error)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "agent-go:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	server := flag.String("server", "http://127.0.0.1:8420", "the address of catalogd serve")
	branch := flag.String("branch", "default", "the branch whose tools the model may use")
	way := flag.String("tools", "calls", "how to reach them: calls, mcp, or library (no daemon)")
	dir := flag.String("C", ".", "the catalog, for -tools library")
	steps := flag.Int("steps", 8, "how many messages of the model at most")
	provider := flag.String("provider", "", "a real model's API, such as https://api.openai.com/v1")
	name := flag.String("model", "stand-in", "the model's name")
	flag.Parse()
	question := cmp.Or(strings.Join(flag.Args(), " "),
		"Water boils at 212 degrees Fahrenheit. Make a note of that in Celsius.")

	var box tools
	var err error
	switch *way {
	case "calls":
		box = calls{*server + "/branches/" + *branch}
	case "mcp":
		box, err = connect(ctx, *server+"/branches/"+*branch+"/mcp")
	case "library":
		box, err = open(ctx, *dir, *branch)
	default:
		err = fmt.Errorf("-tools is calls, mcp or library, not %q", *way)
	}
	if err != nil {
		return err
	}
	if c, ok := box.(io.Closer); ok {
		defer c.Close()
	}
	if *provider == "" {
		url, stop, err := standIn()
		if err != nil {
			return err
		}
		defer stop()
		*provider = url
	}
	answer, err := loop(ctx, model{*provider, *name}, box, question, *steps)
	if err != nil {
		return err
	}
	fmt.Println("answer:", answer)
	return nil
}

// loop lets the model reason and act until it answers. Each step is one message of the model. Without a limit
// an agent can go round for ever, at its owner's expense.
func loop(ctx context.Context, m model, box tools, question string, steps int) (string, error) {
	offered, err := box.offer(ctx)
	if err != nil {
		return "", err
	}
	fmt.Println("question:", question)
	messages := []any{map[string]string{"role": "user", "content": question}}
	for range steps {
		r, err := m.complete(ctx, messages, offered)
		if err != nil {
			return "", err
		}
		messages = append(messages, r.raw)
		if len(r.ToolCalls) == 0 {
			return r.Content, nil
		}
		results, err := box.run(ctx, r)
		if err != nil {
			return "", err
		}
		show(r, results)
		for _, one := range results {
			messages = append(messages, one)
		}
	}
	return "", fmt.Errorf("stopped: no answer after %d steps; -steps allows more", steps)
}

// show prints one step: what the model thinks, what it calls, and what came of it.
func show(r reply, results []result) {
	fmt.Println("thought:", r.Content)
	for i, call := range r.ToolCalls {
		fmt.Printf("  call:   %s %s\n", call.Function.Name, call.Function.Arguments)
		fmt.Println("  result:", strings.ReplaceAll(results[i].Content, "\n", "\n    "))
	}
}
