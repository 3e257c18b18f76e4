package httpapi

import (
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/catalogd/catalogd/internal/token"
)

// Guard is the check of Host and Origin alone.
func Guard(next http.Handler) http.Handler { return guard(hosts{}, func(*http.Request) {}, next) }

// HostNames reports whether a Host is good on a connection to here.
func HostNames(host string, here netip.AddrPort, remote bool) bool {
	return hosts{remote: remote}.names(host, here)
}

// Faulty is the handler of an API whose every operation panics with a text.
func Faulty(of *API, text string) http.Handler {
	a := &API{Config: of.Config}
	a.routes = a.table()
	for _, to := range a.routes {
		for i := range to.operations {
			to.operations[i].handle = func(http.ResponseWriter, *http.Request, token.Caller) { panic(text) }
		}
	}
	return a.Handler()
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

// Metric describes a metric.
type Metric struct {
	Name, Help string
	Labels     []string
}

// Described are catalogd's own metrics, by what prometheus.Desc prints.
func (m *Metrics) Described() (all []Metric) {
	descs := make(chan *prometheus.Desc, 1000)
	m.registry.Describe(descs)
	close(descs)
	form := regexp.MustCompile(`^Desc\{fqName: "(catalogd_[a-z_]+)", help: "([^"]*)",(?: unit: "",)? constLabels: \{\}, variableLabels: \{([a-z_,]*)\}\}$`)
	for d := range descs {
		if found := form.FindStringSubmatch(d.String()); found != nil {
			labels := slices.DeleteFunc(strings.Split(found[3], ","), func(s string) bool { return s == "" })
			all = append(all, Metric{found[1], found[2], labels})
		}
	}
	return all
}
