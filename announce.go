package catalogd

import (
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/catalogd/catalogd/internal/buildcache"
)

// announcing says where Serve announces its address.
type announcing struct {
	state string // the state directory; empty announces nothing
	roots []string
	key   []byte
}

// announcing returns how a daemon of a catalog whose state is kept announces itself.
func (c Config) announcing() (a announcing, err error) {
	root, err := c.root()
	if err != nil {
		return a, err
	}
	a = announcing{c.State, []string{root}, buildcache.NewKey()}
	if c.Dir != "" && c.Dir != root {
		a.roots = append(a.roots, c.Dir)
	}
	return a, nil
}

// prove returns what answers challenges, nil if nothing is announced.
func (a announcing) prove() func(challenge, local string) string {
	if a.key == nil {
		return nil
	}
	return func(challenge, local string) string { return buildcache.Proof(a.key, challenge, local) }
}

// announce writes the address of ln to the state directory, where commands find it, until end. Without that
// everything else works, so what goes wrong is only logged. An address that is not loopback is not announced.
func (c *Catalog) announce(ln net.Listener) (end func()) {
	addr, ok := ln.Addr().(*net.TCPAddr)
	if c.announcing.state == "" || !ok {
		return func() {}
	}
	at := addr.AddrPort().Addr().Unmap()
	switch {
	case at.IsUnspecified() && at.Is4():
		at = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	case at.IsUnspecified():
		at = netip.IPv6Loopback()
	case !at.IsLoopback():
		return func() {}
	}
	remove, err := buildcache.Announce(c.announcing.state, c.announcing.roots, buildcache.Announcement{
		URL: "http://" + netip.AddrPortFrom(at, addr.AddrPort().Port()).String(), Key: c.announcing.key,
		PID: os.Getpid(), Since: time.Now(), Serves: c.announcing.roots[0],
	})
	if err != nil {
		c.log.Warn("commands won't find this daemon by its directory, and need --server", "error", err)
		return func() {}
	}
	return func() {
		if err := remove(); err != nil {
			c.log.Warn("the announcement of this daemon can't be removed", "error", err)
		}
	}
}
