// Command driver is what the client scenarios of the conformance suite test: catalogd as a client, with
// another client before it that makes its calls (test/conformance/client_test.go).
//
//	driver CATALOGD CATALOG CLIENT URL
//
// It gives a copy of the catalog one server, at the suite's URL, locks everything of it, serves it, and runs
// the client with the address of the branch. It ends as the client does.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: driver CATALOGD CATALOG CLIENT URL")
		os.Exit(2)
	}
	if err := drive(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, "driver:", err)
		os.Exit(1)
	}
}

func drive(catalogd, catalog, client, suite string) (err error) {
	home, err := os.MkdirTemp("", "driver")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(home)) }()
	dir := filepath.Join(home, "catalog")
	if err := os.CopyFS(dir, os.DirFS(catalog)); err != nil {
		return err
	}
	if err := declare(dir, suite); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Second) // less than the suite waits
	defer cancel()
	ours := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, catalogd, args...)
		cmd.Dir, cmd.Env, cmd.Stderr = dir, append(os.Environ(), "XDG_STATE_HOME="+home), os.Stderr
		return cmd
	}
	if out, err := ours("lock").Output(); err != nil {
		return fmt.Errorf("catalogd lock: %w\n%s", err, out)
	}
	// There is nothing to decide where no tool could be locked.
	if out, err := ours("lock", "--effect", "read", "*").Output(); err != nil {
		fmt.Fprintf(os.Stderr, "driver: catalogd lock --effect: %v\n%s", err, out)
	}
	daemon := ours("serve", "--addr", "127.0.0.1:0", "--log-format", "json")
	daemon.Stderr = nil
	said, err := daemon.StderrPipe()
	if err != nil {
		return err
	}
	if err := daemon.Start(); err != nil {
		return err
	}
	addresses := make(chan string, 1)
	go func() {
		defer close(addresses)
		for lines := bufio.NewScanner(said); lines.Scan(); {
			fmt.Fprintln(os.Stderr, lines.Text())
			var event struct {
				Msg      string
				Branches []struct{ URL string }
			}
			if json.Unmarshal(lines.Bytes(), &event) == nil && event.Msg == "serving" && len(event.Branches) == 1 {
				addresses <- event.Branches[0].URL
			}
		}
	}()
	defer func() {
		_ = daemon.Process.Kill() // or has ended by itself
		for range addresses {     // until it has ended
		}
		_ = daemon.Wait() // it is killed
	}()
	branch, ok := <-addresses
	if !ok {
		return errors.New("catalogd serve ended without an event with the address of the branch")
	}
	calls := exec.CommandContext(ctx, client, branch)
	calls.Stdout, calls.Stderr = os.Stdout, os.Stderr
	return calls.Run()
}

// declare writes the server and the permission to reach it.
func declare(dir, suite string) error {
	u, err := url.Parse(suite)
	if err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(u.Host)
	if err != nil {
		return err
	}
	path := u.Path
	if path == "" {
		path = "/"
	}
	u.Path = path
	for name, text := range map[string]string{
		"catalog/conformance.cue": fmt.Sprintf(`package catalog

servers: conformance: {
	transport: http: url: %q
	initializeTimeout: "60s"
	discover: {}
	forward: ["resources", "prompts"]
}
branches: default: {}
`, u),
		"policy/trust/data.yaml": fmt.Sprintf(`entries:
  conformance: {scheme: http, host: %s, port: %s, path: %s, addresses: [127.0.0.0/8, "::1/128"]}
`, host, port, path),
	} {
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
