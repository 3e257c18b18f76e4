package upstream

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/catalogd/catalogd/test/internal/harness"
)

// authority signs certificates of servers.
type authority struct {
	template *x509.Certificate
	key      *ecdsa.PrivateKey
	pem      []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{template, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

// sign makes the certificate of 127.0.0.1, or of another name, which ends after a time.
func (a *authority) sign(t *testing.T, name string, ends time.Duration) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(ends),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(name); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{name}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.template, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// TestBadInputCertificate has the part of row D16 that needs an authority which the program trusts: a certificate that holds
// is taken, and in place of it, at the same address, none that doesn't.
func TestBadInputCertificate(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere the system says which authorities are trusted")
	}
	trusted, other := newAuthority(t), newAuthority(t)
	s := &upstreamServer{result: `{"content":[{"type":"text","text":"over TLS"}]}`}
	s.Server = httptest.NewUnstartedServer(s)
	now := make(chan *tls.Certificate, 1)
	s.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		c := <-now
		now <- c
		return &tls.Config{Certificates: []tls.Certificate{*c}}, nil
	}}
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that are broken off
	now <- trusted.sign(t, "127.0.0.1", time.Hour)
	s.StartTLS()
	t.Cleanup(s.Close)

	dir := harness.Assemble(t, "testdata/conformance")
	if err := os.Remove(filepath.Join(dir, "catalog/conformance.cue")); err != nil {
		t.Fatal(err)
	}
	port := s.URL[strings.LastIndexByte(s.URL, ':')+1:]
	harness.WriteFile(t, filepath.Join(dir, "catalog/servers.cue"), fmt.Sprintf("package catalog\n\nbranches: default: {}\nservers: notes: transport: http: url: %q\ntools: read: {description: \"Reads.\", effect: \"read\", binding: mcp: {server: \"notes\", tool: \"read\"}}\n", s.URL+"/mcp"))
	harness.WriteFile(t, filepath.Join(dir, "policy/trust/data.yaml"), fmt.Sprintf("entries:\n  notes: {host: 127.0.0.1, port: %s, addresses: [127.0.0.0/8]}\n", port))
	roots := filepath.Join(t.TempDir(), "roots.pem")
	harness.WriteFile(t, roots, string(trusted.pem))
	program, state := harness.Catalogd(t), t.TempDir()
	for _, c := range []struct {
		row         string
		certificate *tls.Certificate
		says        string // empty where the call is answered
	}{
		{"D16/one that holds", trusted.sign(t, "127.0.0.1", time.Hour), ""},
		{"D16/another authority's", other.sign(t, "127.0.0.1", time.Hour), "unknown authority"},
		{"D16/out of date", trusted.sign(t, "127.0.0.1", -time.Hour), "has expired"},
		{"D16/another host's", trusted.sign(t, "mcp.example.com", time.Hour), "127.0.0.1"},
		{"D16/renewed", trusted.sign(t, "127.0.0.1", time.Hour), ""},
	} {
		t.Run(c.row, func(t *testing.T) {
			<-now
			now <- c.certificate
			cmd := exec.Command(program, "call", "default", "read")
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+roots, "SSL_CERT_DIR="+t.TempDir(), "XDG_STATE_HOME="+state)
			out, err := cmd.CombinedOutput()
			if c.says == "" && (err != nil || !strings.Contains(string(out), "over TLS")) || c.says != "" && (err == nil || !strings.Contains(string(out), c.says)) {
				t.Errorf("%v: %s", err, out)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if c.says != "" && len(s.got) > 0 {
				t.Errorf("the server got %s", s.got)
			}
			s.got = nil
		})
	}
}
