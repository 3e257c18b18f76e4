package main

import (
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
)

// serveProxy forwards bytes and knows nothing of MCP, at "ADDRESS/TARGET": the least that a Go gateway can cost. It keeps
// as many idle connections as there are callers; Go's default of two would halve its throughput.
func serveProxy(what string) error {
	addr, to, _ := strings.Cut(what, "/")
	target, err := url.Parse("http://" + to)
	if err != nil {
		return err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 64
	proxy := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	return http.ListenAndServe(addr, proxy)
}
