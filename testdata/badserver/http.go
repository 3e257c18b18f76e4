package main

import (
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// web is the server over streamable HTTP. A request's path is the fault.
type web struct {
	dir string
	// canary is an address at which nobody may call.
	canary string

	mu       sync.Mutex
	sessions map[string]int
	// replies are the answers to what was asked of the client.
	replies chan string
	choir   *choir
}

// serveHTTP prints {NAME: ADDRESS}: of the server, of one where nobody listens, of the canary, and of servers whose TLS has
// a fault.
func serveHTTP(dir string) {
	log.SetOutput(io.Discard) // the faults of TLS
	w := &web{dir: dir, sessions: map[string]int{}, replies: make(chan string, 100), choir: newChoir()}
	at := map[string]string{}
	listen := func(name string) net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(err)
		at[name] = l.Addr().String()
		return l
	}
	canary := listen("canary")
	w.canary = at["canary"]
	go func() {
		must(http.Serve(canary, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { note(journalOf(dir, "canary"), "%s %s", r.Method, r.URL) })))
	}()
	must(listen("nobody").Close())
	plain := listen("http")
	go func() { must(http.Serve(plain, w)) }()
	for name, config := range brokenTLS() {
		l := tls.NewListener(listen(name), config)
		go func() { must(http.Serve(l, w)) }()
	}
	must(json.NewEncoder(os.Stdout).Encode(at))
	_, err := io.Copy(io.Discard, os.Stdin)
	must(err)
}

// brokenTLS are configurations that no client may accept.
func brokenTLS() map[string]*tls.Config {
	certificate := func(ends time.Time, names []string, ips []net.IP) tls.Certificate {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		must(err)
		template := &x509.Certificate{
			SerialNumber: big.NewInt(1), NotBefore: time.Now().AddDate(-2, 0, 0), NotAfter: ends,
			DNSNames: names, IPAddresses: ips, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		}
		der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
		must(err)
		return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	}
	here, later := []net.IP{net.IPv4(127, 0, 0, 1)}, time.Now().AddDate(1, 0, 0)
	with := func(c tls.Certificate) *tls.Config { return &tls.Config{Certificates: []tls.Certificate{c}} }
	old := with(certificate(later, nil, here))
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS10
	return map[string]*tls.Config{
		"tls-expired":    with(certificate(time.Now().AddDate(-1, 0, 0), nil, here)),
		"tls-other-host": with(certificate(later, []string{"mcp.example.com"}, nil)),
		"tls-unknown-ca": with(certificate(later, nil, here)),
		"tls-1.0":        old,
	}
}

func (s *web) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fault := strings.Trim(r.URL.Path, "/")
	if status, slash := map[string]int{"slash-307": 307, "slash-308": 308, "slash-301": 301}[fault]; slash && !strings.HasSuffix(r.URL.Path, "/") {
		w.Header().Set("Location", r.URL.Path+"/")
		w.WriteHeader(status)
		return
	}
	journal := journalOf(s.dir, fault)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	var req request
	if r.Method == http.MethodPost {
		must(json.Unmarshal(body, &req))
		came(journal, req)
	} else {
		note(journal, "%s %s", r.Method, r.Header.Get("Last-Event-Id"))
	}
	switch {
	case r.Method == http.MethodGet:
		s.resumed(w, fault, r.Header.Get("Last-Event-Id"))
	case r.Method == http.MethodDelete:
		w.WriteHeader(http.StatusOK)
	case strings.HasPrefix(fault, "at-handshake/"):
		s.status(w, r, req, strings.TrimPrefix(fault, "at-handshake/"))
	case req.Method == "server/discover":
		http.Error(w, "unknown", http.StatusBadRequest)
	case req.Method == "initialize" && fault == "mute-at-initialize", req.Method == "tools/list" && fault == "mute-at-list":
		<-r.Context().Done()
	case req.Method == "initialize" && fault == "sends-page-at-initialize":
		page(w, http.StatusOK)
	case req.Method == "initialize":
		s.mu.Lock()
		s.sessions[fault]++
		w.Header().Set("Mcp-Session-Id", fmt.Sprint("session-", s.sessions[fault]))
		s.mu.Unlock()
		answer(w, response(req.ID, greeting(fault)))
	case req.Method == "tools/list":
		answer(w, response(req.ID, listing(fault, req.Params.Cursor)))
	case req.bad() && wrongResults[fault] != "":
		answer(w, response(req.ID, wrongResults[fault]))
	case req.Method == "tools/call" && req.Params.Name == "says":
		w.Header().Set("Content-Type", "text/event-stream")
		s.choir.says(req, fault == "steals", func(message string) {
			io.WriteString(w, "data: "+message+"\n\n")
			w.(http.Flusher).Flush()
		})
	case req.bad():
		s.misbehave(w, r, req, fault)
	case req.Method == "tools/call":
		answer(w, response(req.ID, text("good"+string(req.Params.Arguments))))
	case req.Method == "":
		s.replies <- string(body)
		w.WriteHeader(http.StatusAccepted)
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

func answer(w http.ResponseWriter, message string) {
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, message)
}

func page(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(status)
	io.WriteString(w, "<html><body>This page is for no model.</body></html>")
}

// status answers with a status that the fault names.
func (s *web) status(w http.ResponseWriter, r *http.Request, req request, fault string) {
	switch fault {
	case "401":
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer resource_metadata="http://%s/.well-known/oauth-protected-resource", authorization_uri="javascript:alert(1)"`, s.canary))
		page(w, http.StatusUnauthorized)
	case "403":
		page(w, http.StatusForbidden)
	case "404":
		page(w, http.StatusNotFound)
	case "405":
		page(w, http.StatusMethodNotAllowed)
	case "429":
		w.Header().Set("Retry-After", "30")
		page(w, http.StatusTooManyRequests)
	case "500":
		page(w, http.StatusInternalServerError)
	case "502":
		page(w, http.StatusBadGateway)
	case "204":
		w.WriteHeader(http.StatusNoContent)
	case "302", "307":
		w.Header().Set("Location", "http://"+s.canary+"/latest/meta-data")
		page(w, map[string]int{"302": http.StatusFound, "307": http.StatusTemporaryRedirect}[fault])
	case "redirect-loop":
		w.Header().Set("Location", r.URL.Path)
		w.WriteHeader(http.StatusTemporaryRedirect)
	case "redirect-script":
		w.Header().Set("Location", "javascript:alert(1)")
		w.WriteHeader(http.StatusTemporaryRedirect)
	case "page":
		page(w, http.StatusOK)
	case "hangs-up":
		conn, _, err := w.(http.Hijacker).Hijack()
		must(err)
		conn.Close()
	case "long-headers":
		w.Header().Set("X-Long", strings.Repeat("x", 1<<20))
		answer(w, response(req.ID, text("bad")))
	default:
		must(fmt.Errorf("no such fault: %q", fault))
	}
}

// misbehave is a call of the tool bad.
func (s *web) misbehave(w http.ResponseWriter, r *http.Request, req request, fault string) {
	id := string(req.ID)
	stream := func(events ...string) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range events {
			io.WriteString(w, e+"\n\n")
		}
		w.(http.Flusher).Flush()
	}
	messages := func(all ...string) {
		for i := range all {
			all[i] = "data: " + all[i]
		}
		stream(all...)
	}
	bad := response(req.ID, text("bad"))
	put := func(b []byte) error { _, err := w.Write(b); return err }
	switch fault {
	case "hang":
		<-r.Context().Done()
	case "session-gone": // the first session is forgotten, the next one is not
		if r.Header.Get("Mcp-Session-Id") == "session-1" {
			page(w, http.StatusNotFound)
			return
		}
		answer(w, bad)
	case "huge":
		w.Header().Set("Content-Type", "application/json")
		_ = huge(put, req.ID, 64) // the client has gone
	case "endless-line":
		w.Header().Set("Content-Type", "text/event-stream")
		chunk := []byte(strings.Repeat("x", 1<<20))
		for put(chunk) == nil {
		}
	case "many-blocks":
		answer(w, response(req.ID, manyBlocks()))
	case "bomb": // a few bytes that unpack to many
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_ = huge(func(b []byte) error { _, err := z.Write(b); return err }, req.ID, 64)
		_ = z.Close() // the client has gone
	case "drip":
		stream(": begun")
		for r.Context().Err() == nil {
			io.WriteString(w, ":")
			w.(http.Flusher).Flush()
			time.Sleep(5 * time.Millisecond)
		}
	case "bom":
		answer(w, "\xef\xbb\xbf"+bad)
	case "two-at-once":
		answer(w, bad+response(req.ID, text("second")))
	case "no-json":
		answer(w, `{"jsonrpc":"2.0","id":`+id+`,"result":{"content":[`)
	case "wrong-charset":
		w.Header().Set("Content-Type", "application/json; charset=utf-16")
		io.WriteString(w, "\xff\xfe{\x00}\x00")
	case "unknown-id":
		answer(w, response(json.RawMessage(`777777`), text("of nobody")))
	case "id-as-text":
		answer(w, response(json.RawMessage(`"`+id+`"`), text("bad")))
	case "result-and-error":
		answer(w, `{"jsonrpc":"2.0","id":`+id+`,"result":{"content":[]},"error":{"code":1,"message":"both"}}`)
	case "neither":
		answer(w, `{"jsonrpc":"2.0","id":`+id+`}`)
	case "stream-of-strays": // all of which is dropped
		stream("data: INFO handling", ": a comment", "event: message\ndata: {'jsonrpc'", "data: "+response(json.RawMessage(`777777`), text("of nobody")),
			"data: "+bad, "data: "+response(req.ID, text("twice")))
	case "asks":
		messages(questions()...)
		var answers []string
		for range questions() {
			select {
			case a := <-s.replies:
				answers = append(answers, a)
			case <-r.Context().Done():
				return
			}
		}
		messages(response(req.ID, text(strings.Join(answers, "\n"))))
	case "progress-flood":
		stream(": begun")
		for i := range 10_000 {
			io.WriteString(w, "data: "+progress(req.Params.Meta.Token, i)+"\n\n")
		}
		messages(bad)
	case "foreign-progress":
		messages(progress(json.RawMessage("1"), 1), progress(json.RawMessage("999999"), 1), progress(json.RawMessage(`"x"`), 1), bad)
	case "log-flood":
		stream(": begun")
		for i := range 10_000 {
			fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"error\",\"data\":%d}}\n\n", i)
		}
		messages(bad)
	case "list-changed-storm":
		for range 1000 {
			messages(listChanged)
		}
		messages(bad)
	case "cut": // the stream ends before the result
		messages(progress(req.Params.Meta.Token, 1))
	case "cut-in-result":
		stream("data: " + bad[:len(bad)-5])
		panic(http.ErrAbortHandler)
	case "resumes", "resumes-another", "resumes-with-nothing", "resumes-with-404":
		stream("id: "+id+"\nretry: 10\ndata:", "data: "+progress(req.Params.Meta.Token, 1))
	default:
		if fault == "" || strings.ContainsAny(fault[:1], "0123456789") || strings.HasPrefix(fault, "redirect") || fault == "page" || fault == "hangs-up" || fault == "long-headers" {
			s.status(w, r, req, fault)
			return
		}
		answer(w, bad)
	}
}

// resumed goes on with a stream that was cut.
func (s *web) resumed(w http.ResponseWriter, fault, id string) {
	if fault == "resumes-with-404" || !strings.HasPrefix(fault, "resumes") {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	switch fault {
	case "resumes":
		io.WriteString(w, "data: "+response(json.RawMessage(id), text("bad"))+"\n\n")
	case "resumes-another":
		io.WriteString(w, "data: "+response(json.RawMessage(`777777`), text("of nobody"))+"\n\n")
	}
}
