package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// turn is one turn of calls at one of the four.
type turn struct {
	perSecond float64
	p50, p99  time.Duration
	cpu       time.Duration // of the gateway, per call
}

// gateway is one of the four that are called in turns.
type gateway struct {
	name  string
	url   string
	proc  *process
	turns []turn
}

// measure starts the four, calls them in turns, and prints a table.
func measure(ctx context.Context, c config, tools int) (err error) {
	dir, err := os.MkdirTemp("", "catalogd-bench")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var addrs [4]string
	for i := range addrs {
		if addrs[i], err = free(); err != nil {
			return err
		}
	}
	direct := &gateway{name: "upstream itself", url: "http://" + addrs[0] + "/mcp"}
	if direct.proc, err = start(dir, self, "upstream", fmt.Sprintf("%s/%d", addrs[0], tools)); err != nil {
		return err
	}
	defer direct.proc.stop()
	proxy := &gateway{name: "revproxy", url: "http://" + addrs[1] + "/mcp"}
	if proxy.proc, err = start(dir, self, "revproxy", addrs[1]+"/"+addrs[0]); err != nil {
		return err
	}
	defer proxy.proc.stop()
	for _, g := range []*gateway{direct, proxy} {
		if _, _, err := g.proc.listed(ctx, g.url, tools); err != nil {
			return err
		}
	}
	root := filepath.Join(dir, "catalog")
	if err := catalog(c.catalogd, root, addrs[0]); err != nil {
		return err
	}
	ours := &gateway{name: "catalogd, no decision log", url: "http://" + addrs[2] + "/branches/default/mcp"}
	args := []string{"serve", root, "--addr", addrs[2], "--state", filepath.Join(dir, "state")}
	var names []string
	var starts []time.Duration
	for _, again := range []bool{false, true} { // without anything kept, then with what the first start has kept
		if again {
			ours.proc.stop()
			if c.profile != "" {
				args = append(args, "--cpu-profile", filepath.Join(c.profile, fmt.Sprintf("catalogd-%d.pprof", tools)))
			}
		}
		if ours.proc, err = start(dir, c.catalogd, args...); err != nil {
			return err
		}
		defer ours.proc.stop()
		var took time.Duration
		if names, took, err = ours.proc.listed(ctx, ours.url, tools); err != nil {
			return err
		}
		starts = append(starts, took)
		time.Sleep(time.Second) // what a start keeps is written behind it
	}
	logged := &gateway{name: "catalogd, decision log to a file", url: "http://" + addrs[3] + "/branches/default/mcp"}
	logged.proc, err = start(dir, c.catalogd, "serve", root, "--addr", addrs[3], "--state", filepath.Join(dir, "state-logged"),
		"--decision-log", filepath.Join(dir, "decisions.jsonl"))
	if err != nil {
		return err
	}
	defer logged.proc.stop()
	if _, _, err := logged.proc.listed(ctx, logged.url, tools); err != nil {
		return err
	}
	time.Sleep(c.idle)
	idle, idleOwn, err := ours.proc.memory()
	if err != nil {
		return err
	}
	fmt.Printf("## %d tools\n\nstart-up to the first full list: %d ms cold, %d ms warm; idle memory of the serving process: %.1f MiB, %.1f MiB of it its own\n\n",
		tools, starts[0].Milliseconds(), starts[1].Milliseconds(), mebibytes(idle), mebibytes(idleOwn))
	fmt.Println("| callers | | calls/s | of direct | of revproxy | p50 | p99 | CPU a call |\n|---|---|---|---|---|---|---|---|")
	for _, callers := range c.callers {
		all := []*gateway{direct, proxy, ours, logged}
		for _, g := range all {
			g.turns = nil
		}
		for range c.rounds {
			for _, g := range all {
				t, err := g.turn(ctx, callers, names, c)
				if err != nil {
					return fmt.Errorf("%s: %w", g.name, err)
				}
				g.turns = append(g.turns, t)
			}
		}
		for _, g := range all {
			fmt.Printf("| %d | %s | %.0f | %.2f | %.2f | %.2f ms | %.2f ms | %d us |\n", callers, g.name,
				median(g.turns, func(t turn) float64 { return t.perSecond }), ratio(g, direct), ratio(g, proxy),
				median(g.turns, func(t turn) float64 { return t.p50.Seconds() * 1000 }),
				median(g.turns, func(t turn) float64 { return t.p99.Seconds() * 1000 }),
				int(median(g.turns, func(t turn) float64 { return float64(t.cpu.Microseconds()) })))
		}
	}
	loaded, loadedOwn, err := ours.proc.memory()
	if err != nil {
		return err
	}
	fmt.Printf("\nmemory of the serving process after load: %.1f MiB, %.1f MiB of it its own\n\n", mebibytes(loaded), mebibytes(loadedOwn))
	return nil
}

// turn is one turn of calls.
func (g *gateway) turn(ctx context.Context, callers int, tools []string, c config) (turn, error) {
	var before time.Duration
	var failed error
	took, err := load(ctx, g.url, callers, tools, c.warm, c.turn, func() { before, failed = g.proc.cpu() })
	after, usageErr := g.proc.cpu()
	if err := errors.Join(err, failed, usageErr); err != nil {
		return turn{}, err
	}
	if len(took) == 0 {
		return turn{}, errors.New("no call ended within its turn")
	}
	slices.Sort(took)
	return turn{
		perSecond: float64(len(took)) / c.turn.Seconds(),
		p50:       took[len(took)/2],
		p99:       took[len(took)*99/100],
		cpu:       (after - before) / time.Duration(len(took)),
	}, nil
}

// ratio is the median of how many calls g answered for each of other's in the same round.
func ratio(g, other *gateway) float64 {
	ratios := make([]float64, len(g.turns))
	for i := range g.turns {
		ratios[i] = g.turns[i].perSecond / other.turns[i].perSecond
	}
	return middle(ratios)
}

func median(turns []turn, of func(turn) float64) float64 {
	values := make([]float64, len(turns))
	for i, t := range turns {
		values[i] = of(t)
	}
	return middle(values)
}

func middle(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

func mebibytes(n int) float64 { return float64(n) / (1 << 20) }
