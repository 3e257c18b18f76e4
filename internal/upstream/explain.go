package upstream

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/internal/egress"
	"github.com/catalogd/catalogd/internal/secret"
	"github.com/catalogd/catalogd/registry"
)

// explain converts an HTTP server's answer to x, or its absence, to a failure; nil where resp is the answer.
// Text of the server that is not a JSON-RPC error is not quoted: it may be an HTML page.
func (s *session) explain(x *exchange, resp *response, err error, private *secret.Masker) error {
	f := &failure{code: registry.Unavailable, known: s.knownOfStatus(x.status)}
	f.outcome = words(f.known)
	refused := resp != nil && resp.Error != nil // by a JSON-RPC error, whatever the status
	redirect := redirected(err)
	switch {
	case x.tooLarge():
		f.code, f.msg = registry.OutputTooLarge, tooLargeError{s.limit}.Error()
		if !x.once {
			f.outcome = "ask for less"
		}
	case redirect != nil:
		f.msg, f.outcome = redirect.Error(), nothingRun
	case x.status == 0:
		f.msg, f.drop = plain(err, private), true
		if s.unsent(x, err) {
			f.known, f.outcome = registry.OutcomeUnsent, nothingSent
		}
	case s.forgets(x.status) && (!refused || s.web.sessionID() != ""):
		f.msg = "it has forgotten the session (404), or nothing answers at this path any more"
		f.drop, f.forgotten = true, true
	case x.status >= 500:
		f.msg = explainStatus(x)
	case denied(x.status):
		known := f.known
		*f = *explainAccess(x, s.web.address)
		f.known, f.outcome = known, words(known)
	case x.status >= 400 && refused && x.status != http.StatusTooManyRequests:
		return nil
	case x.status >= 300:
		f.msg, f.drop = explainStatus(x), x.status == http.StatusBadRequest || x.status == http.StatusNotFound
	case err != nil:
		f.msg = "its answer broke off, or is no MCP message"
		f.err = errors.New(plain(err, private))
	case resp.Error == nil && resp.Result == nil, resp.Error != nil && present(resp.Result) != nil:
		f.code, f.msg = registry.ResultInvalid, "it answered with what is no MCP message"
	case key(resp.ID) != x.id && !(resp.Error != nil && present(resp.ID) == nil):
		f.code, f.msg = registry.ResultInvalid, "it answered another request than this one"
	default:
		return nil
	}
	return f.masked(private)
}

// masked takes the secrets of the server's declaration out of f: a redirect, a challenge or a Retry-After may repeat
// them.
func (f *failure) masked(private *secret.Masker) *failure {
	f.msg = private.Replace(f.msg)
	if f.err != nil {
		f.err = errors.New(private.Replace(f.err.Error()))
	}
	return f
}

// forgets reports whether a status can mean that the server doesn't know the session; 2026-07-28 has no
// sessions.
func (s *session) forgets(status int) bool {
	return status == http.StatusNotFound && !mcp.IsModernProtocol(s.version)
}

// redirected returns the redirect that caused err; nil for any other error.
func redirected(err error) *redirectError {
	var e *redirectError
	var outside *egress.OutsideError
	switch {
	case errors.As(err, &e):
		return e
	case errors.As(err, &outside) && outside.Status != 0:
		return &redirectError{outside.Status, shown(*outside.To), outside}
	}
	return nil
}

func denied(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden
}

// explainAccess returns a failure with what a person can do about a 401 or 403, and for the operator the
// server's challenge and the source of the credentials that were sent. OAuth is not supported.
func explainAccess(x *exchange, declared registry.HTTPAddress) *failure {
	f := &failure{code: registry.Unauthorized}
	var names, secrets, more []string
	for _, name := range slices.Sorted(maps.Keys(declared.Headers)) {
		names = append(names, name)
		if ref := declared.Headers[name].Secret; ref != "" {
			secrets = append(secrets, name+" from "+ref)
		}
	}
	if len(secrets) > 0 {
		more = append(more, "credentials sent: "+strings.Join(secrets, ", "))
	}
	if x.challenge != "" {
		more = append(more, "it asks for (WWW-Authenticate): "+clip(x.challenge, 300))
	}
	if len(more) > 0 {
		f.err = errors.New(strings.Join(more, "; "))
	}
	headers := strings.Join(names, ", ")
	switch {
	case x.status == http.StatusUnauthorized && len(names) == 0:
		f.msg = "401: it asks for credentials, and none are declared; get a token from it and declare a header, as in " +
			`headers: Authorization: {secret: "env:NAME", prefix: "Bearer "} (a login by OAuth is not done for it)`
	case x.status == http.StatusUnauthorized:
		f.msg = "401: it does not accept the credentials in its declared headers (" + headers + "), which may have " +
			"expired; renew the secret that they refer to, which is read at each request"
	case len(names) == 0:
		f.msg = "403: it refuses, and no credentials are declared; declare a header with a token of it, or have this " +
			"machine let in"
	default:
		f.msg = "403: it knows the credentials in its declared headers (" + headers + ") and refuses; have it grant " +
			"them what this needs, or use others"
	}
	return f
}

// explainStatus returns what a person can do about an answer that is not MCP.
func explainStatus(x *exchange) string {
	switch {
	case x.status == http.StatusNotFound:
		return "404: nothing answers at this path; check the url (a server of the old SSE transport can answer like " +
			"this, which is not supported)"
	case x.status == http.StatusMethodNotAllowed:
		return "405: old SSE transport not supported; use the address of its streamable HTTP endpoint"
	case x.status == http.StatusTooManyRequests && x.retryAfter != "":
		return fmt.Sprintf("429: too many requests; it asks to wait (Retry-After: %.40s)", x.retryAfter)
	case x.status == http.StatusTooManyRequests:
		return "429: too many requests"
	case x.location != nil:
		return (&redirectError{status: x.status, to: shown(*x.location)}).Error()
	case x.status >= 300 && x.status < 400:
		return fmt.Sprintf("%d: it redirects, and does not say where to", x.status)
	case x.status >= 500:
		return fmt.Sprintf("%d %s: the server, or a proxy before it, has failed", x.status, http.StatusText(x.status))
	}
	return fmt.Sprintf("%d %s", x.status, http.StatusText(x.status))
}

// plain returns err's text without URLs, whose query may be private, and with the server's secrets masked.
func plain(err error, private *secret.Masker) string {
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err
	}
	return clip(private.Replace(err.Error()), 500)
}

// clip returns the beginning of s on one line of at most n bytes (and "..." where it was cut); unprintable
// characters are quoted.
func clip(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if q := strconv.Quote(s); q != `"`+s+`"` {
		s = strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(q[1 : len(q)-1])
	}
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n], "") + "..."
	}
	return s
}
