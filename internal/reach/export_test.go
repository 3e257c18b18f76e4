package reach

import "net/netip"

// Public reports whether ip is an address of the public internet, which needs no naming.
func Public(ip netip.Addr) bool { return notPublic(ip.Unmap()) == "" }
