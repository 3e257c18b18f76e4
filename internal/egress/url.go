package egress

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/catalogd/catalogd/decision/trust"
)

// ParseURL returns the fixed part of a declared URL or RFC 6570 template, as the connect decision sees it:
// scheme, host, port, and the path up to the first expression. It rejects everything that could make the
// target ambiguous: user information, a fragment, an expression or a percent sign before the path, a host
// that is neither a name nor a canonical address.
func ParseURL(declared string) (trust.URL, error) {
	fixed, _, template := strings.Cut(declared, "{")
	scheme, rest, ok := strings.Cut(fixed, "://")
	switch {
	case !ok:
		return trust.URL{}, errors.New("the URL must begin with http:// or https://, written out")
	case scheme != "http" && scheme != "https":
		return trust.URL{}, fmt.Errorf("the scheme %q is not http or https", scheme)
	}
	authority, path := rest, "/"
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority = rest[:i]
	} else if template && !expressionOfQuery(declared[len(fixed):]) {
		return trust.URL{}, errors.New("scheme, host and port are fixed: an expression may stand only behind the first slash of the path")
	}
	if strings.Contains(authority, "@") {
		return trust.URL{}, errors.New("the URL holds user information; send credentials in a header, from a secret")
	}
	if strings.Contains(declared, "#") {
		return trust.URL{}, errors.New("the URL holds a fragment, which is never sent; take the # away, or write %23")
	}
	u, err := url.Parse(fixed)
	if err != nil {
		// The error of net/url repeats the whole text; its cause is enough.
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err
		}
		return trust.URL{}, fmt.Errorf("not a URL: %w", err)
	}
	if u.EscapedPath() != "" {
		path = u.EscapedPath()
	}
	host, err := canonicalHost(u.Hostname(), authority)
	if err != nil {
		return trust.URL{}, err
	}
	port := map[string]int{"http": 80, "https": 443}[scheme]
	if p := u.Port(); p != "" {
		if port, err = strconv.Atoi(p); err != nil || port < 1 || port > 65535 {
			return trust.URL{}, fmt.Errorf("the port %q is not a number from 1 to 65535", p)
		}
	} else if strings.HasSuffix(authority, ":") {
		return trust.URL{}, errors.New("the port is empty; write it or take the colon away")
	}
	if hasDots(path) {
		return trust.URL{}, errors.New("the path holds a . or .. segment; write the path that is meant")
	}
	out := trust.URL{Scheme: scheme, Host: host, Port: port, Path: path, Segments: []string{}, Template: variablePath(declared)}
	if scheme == "https" {
		out.TLS = &trust.TLS{MinVersion: minTLS, ServerName: host, Verified: true}
	}
	for s := range strings.SplitSeq(path, "/") {
		if s != "" {
			out.Segments = append(out.Segments, s)
		}
	}
	return out, nil
}

// expressionOfQuery reports whether s begins with an expression that can't touch the authority: {/x} and
// {?x}.
func expressionOfQuery(s string) bool {
	return strings.HasPrefix(s, "{/") || strings.HasPrefix(s, "{?")
}

// variablePath reports whether an expression of the template can add to the path: one before the query that
// is not itself the query's.
func variablePath(template string) bool {
	for i := 0; i < len(template); i++ {
		switch {
		case template[i] == '?':
			return false
		case strings.HasPrefix(template[i:], "{?"), strings.HasPrefix(template[i:], "{&"):
			return false
		case template[i] == '{':
			return true
		}
	}
	return false
}

func canonicalHost(host, authority string) (string, error) {
	host = strings.ToLower(host)
	switch {
	case host == "":
		return "", errors.New("the URL has no host")
	case strings.Contains(authority, "%"):
		return "", errors.New("the host holds a percent sign; write it out, without a zone")
	case strings.HasSuffix(host, "."):
		return "", fmt.Errorf("the host %q ends with a dot; write it without", host)
	}
	if strings.Contains(host, ":") {
		ip, err := netip.ParseAddr(host)
		if err != nil {
			return "", fmt.Errorf("the host %q is not an IPv6 address", host)
		}
		if ip.Is4In6() {
			return "", fmt.Errorf("the host %q wraps an IPv4 address; write %s", host, ip.Unmap())
		}
		return ip.String(), nil
	}
	for _, r := range host {
		if !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '.' || r == '_') {
			return "", fmt.Errorf("the host %q holds %q; a name is written in ASCII (xn-- for others)", host, r)
		}
	}
	// Resolvers read a name whose last label is a number as an address, in forms such as 127.1 or 0x7f000001.
	last := host[strings.LastIndex(host, ".")+1:]
	if _, err := strconv.ParseUint(last, 0, 64); err == nil || strings.Trim(last, "0123456789") == "" {
		ip, err := netip.ParseAddr(host)
		if err != nil || !ip.Is4() {
			return "", fmt.Errorf("the host %q looks like an IPv4 address but is not written as one (four decimal numbers)", host)
		}
		return ip.String(), nil
	}
	return host, nil
}

// Within returns nil when u is covered by the target: the same scheme, host and port, and the same path, or
// one below the fixed part where the target is a template. A path with a dot segment, however encoded, is
// outside.
func Within(target trust.URL, u *url.URL) error {
	if literally(target, u) {
		return nil
	}
	got, err := ParseURL(u.Scheme + "://" + u.Host)
	switch {
	case err != nil:
		return err
	case u.User != nil:
		return errors.New("the URL holds user information")
	case got.Origin() != target.Origin():
		return fmt.Errorf("%s is not the trusted origin %s", got.Origin(), target.Origin())
	}
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	switch {
	case hasDots(path):
		return errors.New("the path holds a . or .. segment")
	case target.Template && !strings.HasPrefix(path, target.Path):
		return fmt.Errorf("the path %s is not below the trusted %s", path, target.Path)
	case !target.Template && path != target.Path:
		return fmt.Errorf("the path %s is not the trusted %s", path, target.Path)
	}
	return nil
}

// literally reports whether u is spelled exactly as the target, which spares the common request a closer
// check.
func literally(target trust.URL, u *url.URL) bool {
	port, ok := strings.CutPrefix(u.Host, target.Host)
	if !ok || target.Template || u.Scheme != target.Scheme || u.User != nil || u.EscapedPath() != target.Path || strings.Contains(target.Host, ":") {
		return false
	}
	return port == ":"+strconv.Itoa(target.Port)
}

// hasDots reports whether a segment is . or .., including forms that a server may see after decoding the
// path, decoding it twice, or reading a backslash as a slash.
func hasDots(path string) bool {
	for range 3 {
		for s := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '/' || r == '\\' }) {
			if s, _, _ = strings.Cut(s, ";"); s == "." || s == ".." {
				return true
			}
		}
		decoded := unescaped(path)
		if decoded == path {
			return false
		}
		path = decoded
	}
	return false
}

// unescaped decodes a path as servers do: a percent sign that begins no escape stands for itself.
func unescaped(path string) string {
	return escaped.ReplaceAllStringFunc(path, func(s string) string {
		b, err := hex.DecodeString(s[1:])
		if err != nil {
			return s
		}
		return string(b)
	})
}

var escaped = regexp.MustCompile("%[0-9A-Fa-f]{2}")
