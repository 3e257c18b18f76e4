package serve

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// guard refuses requests that a web page could have caused: a page of another origin sends its Origin, and a name that
// was rebound to this machine shows in Host (the class of CVE-2025-49596). It stands before all routing, on every
// method.
//
// Only loopback names with the listening port are allowed. An absent Origin is allowed: programs send none.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := admits(r); err != nil {
			writeError(w, http.StatusForbidden, err.Error())
			return
		}
		next.ServeHTTP(w, r)
	})
}

func admits(r *http.Request) error {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return fmt.Errorf("the listening address is not known, so Host can't be checked")
	}
	hosts := hostsOf(local.String())
	if !oneOf(hosts, r.Host) {
		return fmt.Errorf("the Host %q is not this server's", r.Host)
	}
	switch origins := r.Header.Values("Origin"); {
	case len(origins) == 0:
		return nil
	case len(origins) > 1:
		return fmt.Errorf("more than one Origin")
	default:
		host, ok := strings.CutPrefix(origins[0], "http://")
		if !ok || !oneOf(hosts, host) {
			return fmt.Errorf("the Origin %q is not allowed", origins[0])
		}
	}
	return nil
}

// hostsOf are the values that Host may have on a connection to a local address.
func hostsOf(local string) []string {
	host, port, err := net.SplitHostPort(local)
	if err != nil {
		return nil
	}
	hosts := []string{"localhost:" + port, "127.0.0.1:" + port, "[::1]:" + port}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsLoopback() {
		hosts = append(hosts, net.JoinHostPort(ip.String(), port))
	}
	if port == "80" {
		for _, h := range hosts {
			hosts = append(hosts, strings.TrimSuffix(h, ":80"))
		}
	}
	return hosts
}

func oneOf(hosts []string, host string) bool {
	for _, h := range hosts {
		if strings.EqualFold(h, host) {
			return true
		}
	}
	return false
}

// CheckAddr refuses a listening address that other machines can reach.
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
	return fmt.Errorf("listening address %q is refused: authentication does not exist yet, so only this machine may connect; "+
		"give a loopback address, such as 127.0.0.1:8420", addr)
}
