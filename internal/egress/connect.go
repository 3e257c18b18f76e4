package egress

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/catalogd/catalogd/decision/trust"
)

// Connect opens a connection to the target's host, with a TLS handshake for https, and closes it. No request is
// sent. What Client refuses to connect to is refused. The bound in time is that of ctx.
func Connect(ctx context.Context, tr trust.Trust, target trust.Target) error {
	if err := Check(tr, target, false); err != nil {
		return err
	}
	if target.URL == nil {
		return fmt.Errorf("a target of kind %q has no URL to dial", target.Kind)
	}
	host := strings.Trim(target.URL.Host, "[]")
	filter, err := newAddressFilter(tr.Name(), target.URL.Host, tr.Addresses())
	if err != nil {
		return err
	}
	dialer := &net.Dialer{Control: filter.control}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(target.URL.Port)))
	if err != nil {
		return err
	}
	defer conn.Close()
	if target.URL.Scheme != "https" {
		return nil
	}
	secure := tls.Client(conn, &tls.Config{
		ServerName: host, MinVersion: minVersion, NextProtos: []string{"h2", "http/1.1"},
	})
	return secure.HandshakeContext(ctx)
}
