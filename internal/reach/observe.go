package reach

import (
	"context"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/catalogd/catalogd/decision/trust"
)

const (
	// lookupDeadline bounds the lookups of all hosts of one build: a name that does not resolve in time has no addresses.
	lookupDeadline = time.Second
	// lookupsKept is how long an answer stands, so that a reload at each save of a file asks no name server again.
	lookupsKept = time.Minute
	// lookupsAtOnce caps how many names are looked up at a time.
	lookupsAtOnce = 16
)

// Observer sees what the connect decision is told about a target beside the target itself. The zero Observer is ready for
// use, and safe for concurrent use.
type Observer struct {
	// Digests remembers what programs were found to be.
	Digests Digests

	mu    sync.Mutex
	hosts map[string]found
	roots map[string]string // with their links followed, since the build began
}

// found is the answer to one lookup.
type found struct {
	addresses []string
	at        time.Time
}

// Observe looks at a target: the digest of its program, whether what runs lies below root, the catalog's directory (empty:
// there is none), and the addresses that Begin found. What can't be found out is empty.
func (o *Observer) Observe(target trust.Target, root string) trust.Observed {
	switch {
	case target.Command != nil:
		return trust.Observed{SHA256: o.Digests.file(target.Command.Path), InTree: inTree(*target.Command, root, o.realRoot(root))}
	case target.URL != nil:
		o.mu.Lock()
		defer o.mu.Unlock()
		return trust.Observed{Addresses: o.hosts[target.URL.Host].addresses}
	}
	return trust.Observed{}
}

// Begin begins a build: it resolves hosts for Observe, all of them within a second; an address stands for itself. What it
// finds decides nothing about where a connection goes: addresses are resolved and checked anew when they are dialled.
func (o *Observer) Begin(ctx context.Context, hosts []string) {
	o.mu.Lock()
	o.roots = make(map[string]string)
	o.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, lookupDeadline)
	defer cancel()
	now := time.Now()
	var asked sync.WaitGroup
	turns := make(chan struct{}, lookupsAtOnce)
	for _, host := range o.stale(hosts, now) {
		turns <- struct{}{}
		asked.Go(func() {
			defer func() { <-turns }()
			addresses := lookup(ctx, host)
			o.mu.Lock()
			defer o.mu.Unlock()
			o.hosts[host] = found{addresses, now}
		})
	}
	asked.Wait()
}

// realRoot is root with its links followed, once a build.
func (o *Observer) realRoot(root string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	real, ok := o.roots[root]
	if !ok {
		real = realPath(root)
		if o.roots != nil {
			o.roots[root] = real
		}
	}
	return real
}

// stale are the hosts, each once, of which nothing is known that still stands. A name that did not resolve is asked again
// by the next build.
func (o *Observer) stale(hosts []string, now time.Time) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.hosts == nil {
		o.hosts = make(map[string]found)
	}
	for host, f := range o.hosts {
		if now.Sub(f.at) > lookupsKept {
			delete(o.hosts, host)
		}
	}
	hosts = slices.Compact(slices.Sorted(slices.Values(hosts)))
	return slices.DeleteFunc(hosts, func(host string) bool { return len(o.hosts[host].addresses) > 0 })
}

// lookup is the sorted addresses of a host, none where it does not resolve.
func lookup(ctx context.Context, host string) []string {
	if ip, err := netip.ParseAddr(host); err == nil {
		return []string{ip.String()}
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil
	}
	addresses := make([]string, len(ips))
	for i, ip := range ips {
		addresses[i] = ip.Unmap().WithZone("").String()
	}
	slices.Sort(addresses)
	return slices.Compact(addresses)
}

// Environment names the variables of catalogd's own environment that can be handed on by name, sorted.
func Environment() []string {
	var names []string
	for _, variable := range os.Environ() {
		if name, _, ok := strings.Cut(variable, "="); ok && plainName(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// plainName reports whether a name is made of letters, digits and _, and begins with no digit. Others, such as those of
// functions that a shell exports, are code as often as not.
func plainName(name string) bool {
	for i, c := range []byte(name) {
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// InTree reports whether the command, or the script that an interpreter is told to run, lies below root, as it is written
// or where links lead. root need not be there.
func InTree(c trust.Command, root string) bool { return inTree(c, root, realPath(root)) }

func inTree(c trust.Command, root, realRoot string) bool {
	if !filepath.IsAbs(root) {
		return false
	}
	below := func(path string) bool { return within(root, path) || within(realRoot, path) }
	if below(c.Path) { // its links are followed already
		return true
	}
	if strings.Contains(c.Declared, "/") && below(from(root, c.Declared)) {
		return true
	}
	script, module := scriptOf(c)
	dir := Dir(c.Dir, root)
	if !module {
		return script != "" && (below(from(dir, script)) || below(realPath(from(dir, script))))
	}
	first, _, _ := strings.Cut(script, ".") // python -m package.module looks in the directory that it runs in first
	return slices.ContainsFunc([]string{filepath.Join(dir, first), filepath.Join(dir, first+".py")}, func(p string) bool {
		_, err := os.Stat(p)
		return err == nil && (below(p) || below(realPath(p)))
	})
}

// from is a path as it is seen from dir.
func from(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// realPath is a path with its links followed. What is not there lies where it is written.
func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}

// within reports whether path is root or lies below it, as both are written.
func within(root, path string) bool {
	rel, err := filepath.Rel(root, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}
