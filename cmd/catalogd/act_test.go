package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestActRefused: what answers no results, though with the status of results, is an error of the command.
func TestActRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status     int
		body, says string // says is empty where the body is results
	}{
		"too many bad tokens": {http.StatusTooManyRequests, `{"error":"too many requests with tokens that are not good"}`, "status 429: too many requests"},
		"a busy branch":       {http.StatusTooManyRequests, `{"function":"x","status":"rejected","error":{"code":"overloaded"}}`, ""},
		"a busy branch, many": {http.StatusTooManyRequests, `[{"role":"tool"}]`, ""},
		"a page":              {http.StatusOK, "<html>", "no JSON"},
		"more than is read":   {http.StatusOK, `"` + strings.Repeat("x", maxAnswer) + `"`, "more than 64 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tt.status)
				_, _ = w.Write([]byte(tt.body)) // fails where the client stops to read
			}))
			defer server.Close()
			got, err := (&actCmd{Branch: "default", Server: server.URL}).remote(t.Context(), []byte(`{}`))
			switch {
			case tt.says == "" && (err != nil || !bytes.Equal(got, []byte(tt.body))):
				t.Errorf("got %s, %v; want the results", got, err)
			case tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)):
				t.Errorf("got %.100s, %v; want an error with %q", got, err, tt.says)
			}
		})
	}
}
