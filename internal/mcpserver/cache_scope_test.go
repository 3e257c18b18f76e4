package mcpserver_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/catalogd/catalogd/internal/servetest"
	"github.com/catalogd/catalogd/internal/token"
)

// A list may be given to anybody where anybody may ask, and neither the list nor the call decision reads who does.
func TestCacheScope(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rule   string
		tokens bool
		want   string
		// shipped keeps the shipped rule that reads whether the principal is the operator of this machine.
		shipped bool
	}{
		"nothing is read of who asks":                                          {"", false, `"ttlMs":90000,"cacheScope":"public"`, false},
		"a list that reads a name":                                             {"package catalogd.list\n\ndeny contains \"not yours\" if input.principal.name == \"mallory\"\n", false, `"ttlMs":90000,"cacheScope":"private"`, false},
		"a call that reads all of it":                                          {"package catalogd.call\n\ndeny contains \"not yours\" if count(input.principal) == 0\n", false, `"ttlMs":90000,"cacheScope":"private"`, false},
		"tokens, which say who may ask":                                        {"", true, `"ttlMs":90000,"cacheScope":"private"`, false},
		"the shipped policy, which reads whether an approval may be one's own": {"", false, `"ttlMs":90000,"cacheScope":"private"`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := servetest.NewHouse(t)
			if !c.shipped {
				h.Replace(t, "policy/catalogd/approval.rego", "if input.principal.local", "if input.branch.name")
			}
			if c.rule != "" {
				h.Set("policy/more.rego", c.rule)
			}
			if err := h.Open(t); err != nil {
				t.Fatal(err)
			}
			log := slog.New(slog.NewTextHandler(h.Log, nil))
			b := servetest.Backend{Version: "test", Pin: h.Pin, Status: h.Status, Reload: h.Reload, Log: log, ListTTL: 90 * time.Second}
			var header []string
			if c.tokens {
				holders := servetest.Issue(t, log, token.Token{Name: "ann", Branches: []string{"*"}})
				b.Tokens, header = holders.Store, holders.Header["ann"]
			}
			got := servetest.Listening(t, b).Modern(t, "/branches/default/mcp", "tools/list", "", header...)
			if got.Status != 200 || !strings.Contains(got.Body, c.want) {
				t.Errorf("want %s: %d %s", c.want, got.Status, got.Body)
			}
		})
	}
}
