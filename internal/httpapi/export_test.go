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

// Described are the operations in the order of the table, as rows of docs/http-api.md.
func Described() (rows [][4]string) {
	for _, to := range (&API{}).table() {
		for _, o := range to.operations {
			rows = append(rows, [4]string{o.method, to.path, o.summary, o.who()})
		}
	}
	return rows
}
