package httpapi

import (
	"net/http"
	"net/netip"
)

// Guard is the check of Host and Origin alone.
func Guard(next http.Handler) http.Handler { return guard(hosts{}, func(*http.Request) {}, next) }

// HostNames reports whether a Host is good on a connection to here.
func HostNames(host string, here netip.AddrPort, remote bool) bool {
	return hosts{remote: remote}.names(host, here)
}
