package main

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/catalogd/catalogd/internal/doctor"
	"github.com/catalogd/catalogd/internal/httpapi"
)

// address says whether the address is free, or who serves there. In place of the default one it looks at that of the
// daemon that serves this directory, if there is one. No token is sent.
func (c *doctorCmd) address(e *env, root string) []doctor.Finding {
	own := "" // where the daemon of this directory serves
	if found, err := e.announced(e.ctx, placeFlags{dir: root, state: c.State}); err == nil && found != nil {
		own = strings.TrimPrefix(found.URL, "http://")
	}
	if c.Addr == "127.0.0.1:8420" && own != "" {
		c.Addr = own
	}
	f := doctor.Finding{Check: "address", Severity: doctor.OK, Where: c.Addr, Message: "it is free"}
	if err := httpapi.CheckAddr(c.Addr); err != nil {
		f.Severity, f.Message, f.Fix = doctor.Warning, err.Error(), "serve there with --tokens FILE, or choose a loopback address"
		return []doctor.Finding{f}
	}
	ln, err := net.Listen("tcp", c.Addr)
	var op *net.OpError
	switch {
	case err == nil:
		err = ln.Close()
	case errors.As(err, &op):
		err = op.Err // without the address
	}
	switch {
	case err == nil:
	case errors.Is(err, syscall.EADDRINUSE):
		f.Severity, f.Message, f.Fix = c.taken(own)
	case errors.Is(err, syscall.EACCES):
		f.Severity, f.Message, f.Fix = doctor.Error, "this user may not listen there: "+err.Error(), "choose a port of 1024 or more with --addr"
	default:
		f.Severity, f.Message, f.Fix = doctor.Error, "a daemon can't listen there: "+err.Error(), "choose another address with --addr"
	}
	return []doctor.Finding{f}
}

// taken says who serves at the address; own is where the daemon of this directory does.
func (c *doctorCmd) taken(own string) (severity, message, fix string) {
	if c.Addr == own {
		return doctor.OK, "the daemon of this directory serves there", ""
	}
	if catalogdAt(c.Addr) {
		return doctor.Error, "another catalogd serves there, not that of this directory", "choose another address with --addr, or end the other daemon"
	}
	return doctor.Error, "another program listens there", "choose another address with --addr, or end the other program"
}

// catalogdAt reports whether a catalogd answers at a loopback address.
func catalogdAt(addr string) bool {
	client := http.Client{
		Timeout:       2 * time.Second,
		Transport:     &http.Transport{DisableKeepAlives: true}, // and no proxy
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Get("http://" + addr + "/openapi.json")
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	var page struct {
		Info struct{ Title string }
	}
	err = json.NewDecoder(io.LimitReader(resp.Body, 4<<20)).Decode(&page)
	return err == nil && page.Info.Title == "catalogd"
}
