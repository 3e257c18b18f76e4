package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

// Sandbox says what confines the worker processes, by the layers that they applied.
func Sandbox(layers []string) Finding {
	f := Finding{"sandbox", OK, "workers", "confined by " + strings.Join(layers, ", "), ""}
	missing := func(layer string) bool { return !slices.Contains(layers, layer) }
	switch {
	case runtime.GOOS != "linux":
		f.Severity, f.Message = Warning, "nothing confines CUE and jq on this system but their own code"
		f.Fix = "serve catalogs of people whom you trust, or serve on Linux"
	case missing("seccomp"):
		f.Severity, f.Message = Error, "seccomp does not confine the processes that evaluate CUE and jq (applied: "+strings.Join(layers, ", ")+")"
		f.Fix = "use a kernel with CONFIG_SECCOMP_FILTER, and a container profile that allows seccomp(2) and prctl(2)"
	case missing("rlimit_data"):
		f.Severity, f.Message = Error, "nothing limits the memory of the processes that evaluate CUE and jq"
		f.Fix = "mount /proc, and allow setrlimit(2)"
	case missing("landlock"):
		f.Severity, f.Message = Warning, f.Message+"; Landlock, the second layer against files and ports, is missing"
		f.Fix = "use Linux 5.13 or newer with landlock among lsm=, and a program built with CGO_ENABLED=0, as the released ones are"
	}
	return f
}

// Command says where a program was found that user starts. What npm's programs need beside them is looked up too.
func Command(declared, path, user string) Finding {
	base := filepath.Base(declared)
	if base == "npx" || base == "npm" {
		if !onPath("node") {
			return Finding{"command", Warning, path, "node is not on PATH, which " + base + " of " + user + " needs", Install("node")}
		}
	}
	return Finding{"command", OK, path, fmt.Sprintf("%q of %s", declared, user), ""}
}

func onPath(name string) bool {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		info, err := os.Stat(filepath.Join(dir, name))
		if filepath.IsAbs(dir) && err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
			return true
		}
	}
	return false
}

// installs says how to get programs that servers are often started with.
var installs = []struct{ names, how string }{
	{"npx npm node", "install Node.js 22 or newer (nodejs.org, or the system's package nodejs with npm)"},
	{"uvx uv", "install uv (docs.astral.sh/uv, or pipx install uv)"},
	{"docker", "install Docker, and let this user reach its socket"},
	{"podman", "install Podman"},
	{"python python3", "install Python 3"},
	{"deno", "install Deno (deno.com)"},
	{"bunx bun", "install Bun (bun.sh)"},
}

// Install says how to get a program that is missing.
func Install(program string) string {
	how, next := "install it", ", or write its absolute path; PATH is that of the daemon, which under systemd or a desktop client "+
		"differs from a shell's"
	if strings.ContainsRune(program, '/') { // which is not looked up in PATH
		next = ", or correct the path"
	}
	for _, i := range installs {
		if slices.Contains(strings.Fields(i.names), filepath.Base(program)) {
			how = i.how
		}
	}
	return how + next
}

// Server says whether a trusted server answered, with any status, or why not.
func Server(name, origin string, status int, err error) Finding {
	if err == nil {
		message := fmt.Sprintf("server %s answers (status %d without credentials)", name, status)
		return Finding{"server", OK, origin, message, ""}
	}
	message, fix := unreached(err)
	return Finding{"server", Error, origin, "server " + name + ": " + message, fix}
}

// Tools says whether the host that trusted http tools reach accepted a connection, or why not.
func Tools(names []string, origin string, err error) Finding {
	who := "tool " + names[0]
	if more := len(names) - 1; more > 0 {
		who += fmt.Sprintf(" and %d more", more)
	}
	if err == nil {
		return Finding{"tool", OK, origin, "it accepts connections, for " + who, ""}
	}
	message, fix := unreached(err)
	return Finding{"tool", Error, origin, who + ": " + message, fix}
}

// unreached says what an error on the way to a host means, and what to do.
func unreached(err error) (message, fix string) {
	var dns *net.DNSError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var verify *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	switch {
	case errors.As(err, &dns):
		return "its name is not resolved: " + err.Error(), "correct the URL, or this machine's DNS"
	case errors.As(err, &authority):
		return "TLS: its certificate is signed by an authority that this machine does not know",
			"install the authority's certificate in the system's store, or set SSL_CERT_FILE for the daemon"
	case errors.As(err, &host):
		return "TLS: " + host.Error(), "use the name of the certificate in the URL"
	case errors.As(err, &invalid):
		return "TLS: " + invalid.Error(), "renew the certificate, or correct this machine's clock"
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &verify), errors.As(err, &record), errors.As(err, &alert):
		return "TLS: " + err.Error(), "correct the scheme or port of the URL, or the server's TLS"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there: " + err.Error(), "start the server, or correct the port of the URL"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return "it did not answer in time", "look for a firewall or a hung server, or give --timeout more"
	}
	return "it can't be reached: " + err.Error(),
		"correct the URL, the network or the trust entry; docs/upstream.md says what is dialled"
}
