package mcpconfig

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	decided "github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/reach"
)

// trust is what policy/trust/data.yaml would have to hold for the servers, as comments of CUE: a person reads it, and
// copies what is to be trusted. A target that two servers share gets one entry, because two that cover it deny it.
func trust(declared []declaration) string {
	var b strings.Builder
	b.WriteString("// Importing is not trusting: nothing above is started or dialled until policy/trust/data.yaml has an entry for it. Read\n" +
		"// what each would let in, then copy it there, below entries:, without the slashes and the blank behind them.\n//\n")
	var commands, addresses []covered
	for _, d := range declared {
		if d.url != nil {
			addresses = address(addresses, d)
		} else {
			commands = command(commands, d)
		}
	}
	for _, c := range append(commands, addresses...) {
		if c.why != "" {
			b.WriteString("//   # " + c.name + ": " + c.why + "\n")
			continue
		}
		b.WriteString("//   " + scalar(c.name) + ":\n")
		for _, line := range c.lines() {
			b.WriteString("//     " + line + "\n")
		}
	}
	return b.String()
}

// covered is one entry.
type covered struct {
	name string
	// why is said instead of an entry that can't be written yet.
	why string

	argv        []string
	exact       bool
	dir         string
	env         []string // declared names that the policy wants written out
	interpreter bool
	unpinned    bool
	inTree      bool

	url     decided.URL
	headers []string
}

func command(all []covered, d declaration) []covered {
	c := covered{name: d.name, exact: true}
	if d.command.hole != "" || (d.cwd != nil && d.cwd.hole != "") {
		c.why = "the command is not known yet: fill in the declaration, then ask `catalogd trust`"
		return append(all, c)
	}
	c.argv = []string{d.command.literal}
	for _, a := range d.args {
		if a.hole != "" {
			c.exact = false
			break
		}
		c.argv = append(c.argv, a.literal)
	}
	if d.cwd != nil {
		c.dir = d.cwd.literal
	}
	for _, e := range d.env {
		if writtenOut(e.key) {
			c.env = append(c.env, e.key)
		}
	}
	for i, other := range all {
		if other.why == "" && other.exact == c.exact && other.dir == c.dir && slices.Equal(other.argv, c.argv) {
			for _, name := range c.env {
				if !slices.Contains(other.env, name) {
					all[i].env = append(all[i].env, name)
				}
			}
			return all
		}
	}
	asked := decided.Command{Declared: c.argv[0], Path: c.argv[0], Args: c.argv[1:], Dir: c.dir}
	c.inTree = reach.InTree(asked, anyRoot)
	c.interpreter = reach.InlineCode(asked) != ""
	c.unpinned = unpinned(c.argv)
	return append(all, c)
}

// anyRoot stands for the catalog's directory, wherever that will be.
const anyRoot = "/catalog/that/is/not/there/yet"

// secretWords are the shipped policy's (policy/env/data.yaml), of which a test makes sure. A variable whose name holds one is
// set only where the trust entry has its name.
var secretWords = []string{
	"KEY", "TOKEN", "SECRET", "PASS", "PWD", "CREDENTIAL", "CREDS", "AUTH", "COOKIE", "SESSION", "BEARER", "JWT", "PRIVATE", "CERT",
	"SIGNATURE", "SIGNING", "SALT", "DSN", "CONNECTION", "CONN_STR", "DATABASE_URL", "DB_URL", "REDIS_URL", "MONGO", "AMQP", "WEBHOOK",
	"NETRC", "KUBECONFIG", "VAULT",
}

// writtenOut reports whether the shipped policy wants the name of a declared variable in the trust entry's env, and an
// entry can have it there.
func writtenOut(name string) bool {
	return variableName.MatchString(name) && slices.ContainsFunc(secretWords, func(word string) bool {
		return strings.Contains(strings.ToUpper(name), word)
	})
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// address joins the new entry with one that covers it, or that it covers.
func address(all []covered, d declaration) []covered {
	c := covered{name: d.name}
	if d.url.hole != "" {
		c.why = "the URL is not known yet: fill in the declaration, then ask `catalogd trust`"
		return append(all, c)
	}
	u, err := reach.ParseURL(d.url.literal)
	if err != nil {
		c.why = "the URL can't be trusted as it is: `catalogd check` says why"
		return append(all, c)
	}
	c.url = u
	for _, e := range d.env {
		c.headers = append(c.headers, e.key)
	}
	for i, other := range all {
		if other.why != "" || other.url.Origin() != u.Origin() {
			continue
		}
		shorter := min(len(other.url.Segments), len(u.Segments))
		if !slices.Equal(other.url.Segments[:shorter], u.Segments[:shorter]) {
			continue
		}
		if len(u.Segments) < len(other.url.Segments) {
			all[i].url = u
		}
		for _, h := range c.headers {
			if !slices.Contains(all[i].headers, h) {
				all[i].headers = append(all[i].headers, h)
			}
		}
		return all
	}
	return append(all, c)
}

// lines are the entry's fields in YAML.
func (c covered) lines() []string {
	if len(c.argv) > 0 {
		out := []string{"command: " + sequence(c.argv)}
		if c.exact {
			out = append(out, "exact: true")
		} else {
			out = append(out, "# what follows is not known yet, and free; once it is, write it out and say exact: true")
		}
		if c.dir != "" {
			out = append(out, "dir: "+scalar(c.dir))
		}
		out = append(out, "env: "+sequence(append([]string{"HOME", "PATH"}, c.env...)))
		if c.interpreter {
			out = append(out, "interpreter: true # it runs code that it is given")
		}
		if c.inTree {
			out = append(out, "in_tree: true # it lies in the catalog's directory: whoever edits the catalog edits it")
		}
		if c.unpinned {
			out = append(out, "unpinned: true # it fetches what it runs; an exact version or digest above is better")
		}
		return out
	}
	out := []string{"host: " + scalar(c.url.Host)}
	if c.url.Scheme != "https" {
		out = append(out, "scheme: "+c.url.Scheme)
	}
	if c.url.Port != map[string]int{"http": 80, "https": 443}[c.url.Scheme] {
		out = append(out, fmt.Sprintf("port: %d", c.url.Port))
	}
	if c.url.Path != "/" {
		out = append(out, "path: "+scalar(c.url.Path))
	}
	if len(c.headers) > 0 {
		out = append(out, "headers: "+sequence(c.headers))
	}
	if ranges := private(c.url.Host); ranges != nil {
		out = append(out, "addresses: "+sequence(ranges))
	}
	return out
}

// private are the ranges that must be named for a host that is this machine or has no public address.
func private(host string) []string {
	if host == "localhost" {
		return []string{"127.0.0.0/8", "::1/128"}
	}
	a, err := netip.ParseAddr(host)
	if err != nil || !(a.IsLoopback() || a.IsPrivate() || a.IsLinkLocalUnicast()) {
		return nil
	}
	return []string{netip.PrefixFrom(a, a.BitLen()).String()}
}

var plainScalar = regexp.MustCompile(`^[A-Za-z_./][A-Za-z0-9_./-]*$`)

// scalar is a text of YAML. JSON's strings are YAML's, and so is a word that can be nothing but text.
func scalar(s string) string {
	if plainScalar.MatchString(s) && !slices.Contains([]string{"true", "false", "yes", "no", "on", "off", "null", "y", "n"}, strings.ToLower(s)) {
		return s
	}
	quoted, err := json.Marshal(s)
	if err != nil {
		return `""` // a string always has a JSON form
	}
	return string(quoted)
}

func sequence(list []string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = scalar(s)
	}
	return "[" + strings.Join(out, ", ") + "]"
}
