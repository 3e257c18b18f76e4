package egress

import (
	"context"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/catalogd/catalogd/decision/trust"
)

const (
	// lookupDeadline bounds the lookups of all hosts of one build: a name that does not resolve in time has
	// no addresses.
	lookupDeadline = time.Second
	// lookupsKept is how long an answer is cached, so that reloads at each save of a file ask no name server
	// again.
	lookupsKept = time.Minute
	// lookupsAtOnce caps how many names are looked up at a time.
	lookupsAtOnce = 16
)

// Observer collects what the connect decision knows about a target beside the target itself. The zero
// Observer is ready for use, and safe for concurrent use.
type Observer struct {
	// Digests remembers what programs were found to be.
	Digests Digests

	mu    sync.Mutex
	hosts map[string]hostLookup
	roots map[string]string // with their links followed, since the build began
}

// hostLookup is the answer to one lookup of a host.
type hostLookup struct {
	addresses []string
	at        time.Time
}

// Observe returns the digest of the target's program, whether what runs lies below root, the catalog's
// directory (empty: there is none), and the addresses that Begin found. What can't be found out is empty.
func (o *Observer) Observe(target trust.Target, root string) trust.Observed {
	switch {
	case target.Command != nil:
		runs := Recognise(*target.Command)
		return trust.Observed{
			SHA256: o.Digests.file(target.Command.Path), InTree: inTree(*target.Command, root, o.realRoot(root)),
			RunsCode: runs.RunsCode, Unpinned: runs.Unpinned,
		}
	case target.URL != nil:
		o.mu.Lock()
		defer o.mu.Unlock()
		return trust.Observed{Addresses: o.hosts[target.URL.Host].addresses}
	}
	return trust.Observed{}
}

// Begin begins a build: it resolves hosts for Observe, all within a second. It does not decide where
// connections go: names are resolved and addresses checked again when they are dialled.
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
			o.hosts[host] = hostLookup{addresses, now}
		})
	}
	asked.Wait()
}

// realRoot returns root with its links resolved, cached for one build.
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

// stale returns the distinct hosts that have no cached answer. A name that did not resolve is looked up again
// by the next build.
func (o *Observer) stale(hosts []string, now time.Time) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.hosts == nil {
		o.hosts = make(map[string]hostLookup)
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

// InTree reports whether the command, the script that an interpreter runs or the directory that it works in
// lies below root, or root below that directory, as they are written or where links lead. root need not be
// there.
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
	if script := Script(c, root); script != "" && (below(script) || below(realPath(script))) {
		return true
	}
	// A program may load whatever lies in the directory that it works in, or below it.
	return slices.ContainsFunc(workingDirs(c, root), func(dir string) bool {
		real := realPath(dir)
		return below(dir) || below(real) || within(dir, root) || within(real, realRoot)
	})
}

// workingDirs are the directory that is declared for the command, and the one that its command line changes
// to.
func workingDirs(c trust.Command, root string) (dirs []string) {
	if c.Dir != "" {
		dirs = append(dirs, Dir(c.Dir, root))
	}
	if to := Recognise(c).Dir; to != "" {
		dirs = append(dirs, from(Dir(c.Dir, root), to))
	}
	return dirs
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
