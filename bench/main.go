// Command bench measures what catalogd costs on the way to an MCP server, beside the least that any Go gateway can cost.
//
// It starts four programs on this machine: an upstream that is never the bottleneck, a reverse proxy that
// forwards bytes and knows nothing of MCP, and `catalogd serve` with the shipped policy on a catalog whose
// tools are those of the upstream, locked: once without a decision log, and once with one to a file. The same
// client then calls the same tools at the upstream itself, through the proxy and through both catalogds, in
// turns of a few seconds, round after round. What other work does to the machine does it to all of them
// alike, so the ratios of one run are what counts; each is the median of the rounds.
//
//	go run . -catalogd ../bin/catalogd
//
// It uses the standard library alone, speaks raw JSON-RPC over streamable HTTP, and reads memory and CPU time from /proc,
// so that it runs on Linux only.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// config holds the settings of a run.
type config struct {
	catalogd string
	tools    []int
	callers  []int
	turn     time.Duration
	warm     time.Duration
	rounds   int
	idle     time.Duration
	profile  string
}

func main() {
	// The program is its own upstream and proxy: what is measured runs in processes of its own.
	if len(os.Args) > 2 {
		var err error
		switch os.Args[1] {
		case "upstream":
			err = serveUpstream(os.Args[2])
		case "revproxy":
			err = serveProxy(os.Args[2])
		default:
			err = errNoRole
		}
		if !errors.Is(err, errNoRole) {
			exit(err)
		}
	}
	var c config
	tools, callers := "100,1000", "1,16"
	flag.StringVar(&c.catalogd, "catalogd", "../bin/catalogd", "the program to measure")
	flag.StringVar(&tools, "tools", tools, "how many tools the upstream has, run after run")
	flag.StringVar(&callers, "c", callers, "how many callers there are at once, run after run")
	flag.DurationVar(&c.turn, "d", 3*time.Second, "how long one turn of calls takes")
	flag.DurationVar(&c.warm, "warm", 500*time.Millisecond, "how long each turn calls before it counts")
	flag.IntVar(&c.rounds, "rounds", 5, "rounds of turns: upstream, proxy, catalogd without and with a decision log")
	flag.DurationVar(&c.idle, "idle", 8*time.Second, "how long to wait before the memory of an idle process is read")
	flag.StringVar(&c.profile, "profile", "", "have catalogd write its CPU profiles to this directory")
	flag.Parse()
	var err error
	if c.tools, err = numbers(tools); err == nil {
		c.callers, err = numbers(callers)
	}
	if err != nil {
		exit(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	exit(run(ctx, c))
}

var errNoRole = errors.New("no role of this program")

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func numbers(list string) ([]int, error) {
	var all []int
	for part := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is no list of whole numbers from 1", list)
		}
		all = append(all, n)
	}
	return all, nil
}

// run measures every number of tools and prints what it finds as Markdown.
func run(ctx context.Context, c config) error {
	program, err := filepath.Abs(c.catalogd)
	if err != nil {
		return err
	}
	c.catalogd = program
	for _, tools := range c.tools {
		if err := measure(ctx, c, tools); err != nil {
			return fmt.Errorf("with %d tools: %w", tools, err)
		}
	}
	return nil
}
