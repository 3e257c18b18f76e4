package egress

import (
	"fmt"
	"net/netip"
	"strings"
	"syscall"
)

// special are the ranges that are not the public internet (IANA's special-purpose registries), by the word
// that an error uses. Of IPv6, only 2000::/3 without these is public.
var special = []struct {
	prefix netip.Prefix
	word   string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "this host"},
	{netip.MustParsePrefix("10.0.0.0/8"), "private"},
	{netip.MustParsePrefix("100.64.0.0/10"), "shared (CGNAT)"},
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local, where clouds keep credentials"},
	{netip.MustParsePrefix("172.16.0.0/12"), "private"},
	{netip.MustParsePrefix("192.0.0.0/24"), "reserved"},
	{netip.MustParsePrefix("192.0.2.0/24"), "reserved"},
	{netip.MustParsePrefix("192.88.99.0/24"), "reserved"},
	{netip.MustParsePrefix("192.168.0.0/16"), "private"},
	{netip.MustParsePrefix("198.18.0.0/15"), "reserved"},
	{netip.MustParsePrefix("198.51.100.0/24"), "reserved"},
	{netip.MustParsePrefix("203.0.113.0/24"), "reserved"},
	{netip.MustParsePrefix("224.0.0.0/3"), "multicast or reserved"},
	{netip.MustParsePrefix("::1/128"), "loopback"},
	{netip.MustParsePrefix("64:ff9b::/96"), "a translation to IPv4 (NAT64)"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "a translation to IPv4 (NAT64)"},
	{netip.MustParsePrefix("fc00::/7"), "private"},
	{netip.MustParsePrefix("fe80::/10"), "link-local"},
	{netip.MustParsePrefix("2001::/23"), "reserved"},
	{netip.MustParsePrefix("2001:db8::/32"), "reserved"},
	{netip.MustParsePrefix("2002::/16"), "a translation to IPv4 (6to4)"},
	{netip.MustParsePrefix("3fff::/20"), "reserved"},
}

var publicIPv6 = netip.MustParsePrefix("2000::/3")

// notPublic names the special range that an address lies in; empty for a public address.
func notPublic(ip netip.Addr) string {
	for _, s := range special {
		if s.prefix.Contains(ip) {
			return s.word
		}
	}
	if ip.Is6() && !publicIPv6.Contains(ip) {
		return "reserved"
	}
	return ""
}

// addressFilter is the set of addresses that a client may connect to: public ones, and the ranges that the
// trust entry names.
type addressFilter struct {
	entry string
	named []netip.Prefix
	// loopback restricts the client to this machine, whatever ranges are named: the host is localhost, or a
	// name below it, which stand for loopback (RFC 6761, 6.3) and may be reached in the clear for that
	// reason.
	loopback bool
}

func newAddressFilter(entry, host string, ranges []string) (addressFilter, error) {
	f := addressFilter{entry: entry, loopback: host == "localhost" || strings.HasSuffix(host, ".localhost")}
	for _, r := range ranges {
		text := r
		if !strings.Contains(r, "/") {
			ip, err := netip.ParseAddr(r)
			if err != nil {
				return addressFilter{}, fmt.Errorf("trust entry %q: %q is not an IP address or a range of them (CIDR)", entry, r)
			}
			text = netip.PrefixFrom(ip, ip.BitLen()).String()
		}
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return addressFilter{}, fmt.Errorf("trust entry %q: %q is not an IP address or a range of them (CIDR)", entry, r)
		}
		f.named = append(f.named, prefix.Masked())
	}
	return f, nil
}

// control is net.Dialer's Control: it runs after DNS and before the connection, on the address that is
// connected to.
func (f addressFilter) control(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("address %q: %w", address, err)
	}
	return f.allow(at.Addr())
}

// allow returns nil when the address may be connected to.
func (f addressFilter) allow(ip netip.Addr) error {
	ip = ip.Unmap().WithZone("")
	word := notPublic(ip)
	if f.loopback && !ip.IsLoopback() {
		return fmt.Errorf("localhost resolves to %s, which is not loopback, so it is not dialled", ip)
	}
	if word == "" {
		return nil
	}
	for _, p := range f.named {
		if p.Contains(ip) {
			return nil
		}
	}
	return &AddressError{Entry: f.entry, Address: ip, Kind: word}
}

// AddressError is the refusal to connect to an address that is not public and that no trust entry names.
type AddressError struct {
	// Entry is the trust entry that would have to name the address.
	Entry   string
	Address netip.Addr
	// Kind is the word for the range that the address lies in.
	Kind string
}

func (e *AddressError) Error() string {
	return fmt.Sprintf("the address %s is %s and not dialled: trust entry %q would have to name it, addresses: [\"%s/%d\"]",
		e.Address, e.Kind, e.Entry, e.Address, e.Address.BitLen())
}

// Public reports whether an address is on the public internet. Others are dialled where a trust entry names
// them.
func Public(ip netip.Addr) bool { return notPublic(ip.Unmap()) == "" }
