package httpapi

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/catalogd/catalogd/internal/mcpserver"
)

// guard refuses requests that a web page could have caused: a page of another origin sends its Origin, and a
// name that was rebound to this machine appears in Host (the class of CVE-2025-49596). It precedes all
// routing, for every method.
//
// Only loopback names with the listening port are allowed. With tokens, so are the address that was connected
// to, and the operator's names with any port, because a proxy on another port may precede this server. An
// absent Origin is allowed, because programs send none. refused is called with each refused request.
func guard(may hosts, refused func(*http.Request), next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := checkOrigin(r, may); err != nil {
			refused(r)
			mcpserver.WriteError(w, http.StatusForbidden, err.Error())
			return
		}
		next.ServeHTTP(w, r)
	})
}

func checkOrigin(r *http.Request, may hosts) error {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return fmt.Errorf("the listening address is not known, so Host can't be checked")
	}
	here := addrOf(local)
	known := may.knows(r.Host)
	if !known && !may.names(r.Host, here) {
		return fmt.Errorf("the Host %q is not this server's; the operator names others with --host", r.Host)
	}
	switch origins := r.Header["Origin"]; {
	case len(origins) == 0:
		return nil
	case len(origins) > 1:
		return fmt.Errorf("more than one Origin")
	default:
		host, ok := strings.CutPrefix(origins[0], "http://")
		if known && !ok {
			host, ok = strings.CutPrefix(origins[0], "https://") // from a proxy
		}
		if !ok || !may.names(host, here) && (!known || !strings.EqualFold(host, r.Host)) {
			return fmt.Errorf("the Origin %q is not allowed", origins[0])
		}
	}
	return nil
}

// addrOf returns the local address of a connection; invalid if it isn't TCP.
func addrOf(a net.Addr) netip.AddrPort {
	if tcp, ok := a.(*net.TCPAddr); ok {
		here := tcp.AddrPort()
		return netip.AddrPortFrom(here.Addr().Unmap(), here.Port())
	}
	here, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.AddrPort{}
	}
	return here
}

// hosts are the values that Host may have.
type hosts struct {
	remote bool     // also the connected address, if it isn't loopback
	named  []string // the operator's names, with any port
}

// names reports whether Host may have the value host on a connection to here: a loopback name or address, or
// here itself, with the port unless that is 80.
func (may hosts) names(host string, here netip.AddrPort) bool {
	if !here.IsValid() {
		return false
	}
	name, port := host, "80"
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		name, port = host[:i], host[i+1:]
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || uint16(n) != here.Port() || port[0] == '0' {
		return false
	}
	if len(name) == len("localhost") && strings.EqualFold(name, "localhost") || name == "127.0.0.1" || strings.EqualFold(name, "[::1]") {
		return true
	}
	ip, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(name, "["), "]"))
	return err == nil && (may.remote || ip.IsLoopback()) && ip == here.Addr() && ip.Is6() == strings.HasPrefix(name, "[")
}

// knows reports whether host is one of the operator's names, with any port.
func (may hosts) knows(host string) bool {
	name := host
	if n, port, err := net.SplitHostPort(host); err == nil {
		if p, err := strconv.ParseUint(port, 10, 16); err != nil || p == 0 || port[0] == '0' {
			return false
		}
		name = n
	}
	return slices.ContainsFunc(may.named, func(h string) bool { return strings.EqualFold(h, name) })
}

// CheckAddr returns an error for a listening address that other machines can reach, which a daemon without
// tokens must not have.
func CheckAddr(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("listening address %q: %w; give host:port, such as 127.0.0.1:8420", addr, err)
	}
	if host == "localhost" {
		return nil
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("listening address %q is refused: without tokens everyone who connects is the operator, so only this machine may; "+
		"give a loopback address, such as 127.0.0.1:8420, or --tokens FILE", addr)
}
