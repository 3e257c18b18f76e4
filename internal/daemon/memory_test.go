package daemon_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/catalogd/catalogd/internal/daemon"
	"github.com/catalogd/catalogd/internal/servetest"
	"github.com/catalogd/catalogd/loader"
)

// watchful is an adopt policy that refuses a change of itself, and one that takes a tool that reads from the public.
const watchful = `package catalogd.adopt

default allow := false

allow if input.bootstrap

allow if input.serving

deny contains "the policy is frozen" if {
	not input.bootstrap
	input.changes.policy_changed
}

deny contains sprintf("%s would lose %s of server %q", [lost.branch, lost.tool, lost.server]) if {
	not input.bootstrap
	some lost in input.changes.visibility_lost
	lost.effect == "read"
}

deny contains sprintf("changed: %v, trust lost: %v", [input.changes.tools_changed, input.changes.trust_lost]) if {
	not input.bootstrap
	some lost in input.changes.trust_lost
	lost.name == "remote"
}
`

// TestLastPolicyDecidesOfFilesThatNoLongerBuild: where what was adopted last can't be served by this version
// any more, its policy decides all the same, on what was recorded of it, as it would while it serves.
func TestLastPolicyDecidesOfFilesThatNoLongerBuild(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, file, old, new string
		refused              []string // nothing where it is adopted
	}{
		{"a policy of its own", "policy/adopt.rego", watchful, free, []string{"the policy is frozen"}},
		{"data", "policy/access/data.yaml", "reason: not for the public", "reason: never", []string{"the policy is frozen"}},
		{"a tool is gone", "catalog/home.cue", "tools: secret:", "tools: public:", []string{`default would lose secret of server ""`}},
		{"a tool of a server is gone", "catalog/home.cue", "tools: remote_echo:", "tools: remote_ohce:", []string{`default would lose remote_echo of server "remote"`}},
		{"a server goes elsewhere", "catalog/home.cue", "127.0.0.1:1/mcp", "127.0.0.1:2/mcp", []string{`default would lose remote_echo of server "remote"`, `changed: [], trust lost: [{"labels": {}, "name": "remote", "trust": "remote"}]`}},
		{"a tool is changed", "catalog/home.cue", "Upper-case a text.", "Upper-case it.", nil},
		{"a tool more", "catalog/home.cue", "servers: remote:", "tools: more: {description: \"d\", effect: \"read\", binding: jq: program: \".\"}\nservers: remote:", nil},
	} {
		for _, builds := range []bool{true, false} {
			name := test.name + ", which builds"
			if !builds {
				name = test.name + ", which no longer builds"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				h := servetest.NewHouse(t)
				record := h.Remembering(t)
				h.SetAdopt(watchful)
				if err := h.Open(t); err != nil {
					t.Fatal(err)
				}
				first := h.Status().Generation.ID
				h.Close()
				if !builds { // as if this version found fault with it
					was, err := record.Load()
					if err != nil {
						t.Fatal(err)
					}
					broken := fstest.MapFS{"catalog/broken.cue": {Data: []byte("package catalog\n\ntools: x: {")}}
					for name, file := range h.Files {
						broken[name] = file
					}
					if was.Snapshot, _ = (loader.Tree{FS: broken}).Snapshot(t.Context()); was.Snapshot == nil {
						t.Fatal("no snapshot")
					}
					if err := record.Save(*was); err != nil {
						t.Fatal(err)
					}
				}
				h.Replace(t, test.file, test.old, test.new)
				err := h.Open(t)
				switch {
				case test.refused == nil:
					if err != nil {
						t.Fatal(err)
					}
					if s := h.Status(); s.Generation.Adopted != "adopted" || s.Generation.ID == first || !s.Healthy {
						t.Errorf("got %+v", s.Generation)
					}
					return
				case builds:
					if err != nil {
						t.Fatal(err)
					}
					s := h.Status()
					if s.Generation.Adopted != "resumed" || s.Generation.ID != first || s.Healthy || s.Failed.Reason != "adoption_denied" || s.Failed.Candidate == nil {
						t.Errorf("got %+v, failed %+v", s.Generation, s.Failed)
					}
					err = s.Failed.Problems.Err()
				default:
					var refused *daemon.RefusedError
					if !errors.As(err, &refused) {
						t.Fatalf("got %v", err)
					}
					for _, want := range []string{"the policy that was adopted last refuses", "can't be served in its place: catalog/broken.cue:3:", "--bootstrap"} {
						if !strings.Contains(err.Error(), want) {
							t.Errorf("got %v, want it to say %s", err, want)
						}
					}
				}
				for _, want := range test.refused {
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("got %v, want it to say %s", err, want)
					}
				}
			})
		}
	}
}

// TestStartWithErrors: files with errors at a start leave what was adopted last in service, whole: its policy
// is the one that was adopted, whatever the files say now, and what it reaches is decided again. Corrected
// files are adopted by a reload.
func TestStartWithErrors(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason string
		edit   func(h *servetest.House)
	}{
		"the catalog": {"problems", func(h *servetest.House) {
			h.Set("catalog/broken.cue", "package catalog\n\ntools: x: {")
			h.Set("policy/access/data.yaml", "branches: {}\nhide: []\n")
		}},
		"the policy": {"problems", func(h *servetest.House) { h.Set("policy/broken.rego", "package catalogd.call\n\nallow if {") }},
		"unreadable": {"source", func(h *servetest.House) { h.Unreadable = true }},
		"literal secret": {"problems", func(h *servetest.House) {
			h.Set("catalog/broken.cue", "package catalog\n\nservers: s: transport: http: {url: \"https://a.example\", headers: Authorization: \"Bearer ghp_0123456789abcdefghijklmnopqrstuvwxyz\"}\n")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := servetest.NewHouse(t)
			h.Remembering(t)
			if err := h.Open(t); err != nil {
				t.Fatal(err)
			}
			first, names := h.Status().Generation, h.Names(t, "default")
			access := h.Get("policy/access/data.yaml")
			h.Close()
			h.Asked()
			test.edit(h)
			if err := h.Open(t); err != nil {
				t.Fatal(err)
			}
			s := h.Status()
			if s.Healthy || s.Generation.Adopted != "resumed" || s.Generation.ID != first.ID || s.Generation.Policy != first.Policy ||
				s.Failed.Reason != test.reason || !s.Failed.Problems.HasErrors() || s.Failed.At.IsZero() {
				t.Errorf("got %+v, failed %+v; want %+v", s.Generation, s.Failed, first)
			}
			if got := h.Names(t, "default"); !slices.Equal(got, names) {
				t.Errorf("lists %v, want %v", got, names)
			}
			if log := h.Log.String(); !strings.Contains(log, "level=ERROR msg=\"the files are refused at this start; what was adopted last is served") {
				t.Errorf("the log:\n%s", log)
			}
			if connect, _ := h.Asked(); connect == 0 {
				t.Error("no connect decision was asked")
			}
			h.MustReload(t, "refused")
			if log := h.Log.String(); strings.Contains(log, "reload refused") || strings.Contains(log, "right again") {
				t.Errorf("the log of a reload of the same files, of which it has spoken:\n%s", log)
			}
			delete(h.Files, "catalog/broken.cue")
			delete(h.Files, "policy/broken.rego")
			h.Set("policy/access/data.yaml", access)
			h.Unreadable = false
			h.MustReload(t, "unchanged")
			if s := h.Status(); !s.Healthy || s.Failed != nil {
				t.Errorf("after the correction: %+v", s.Failed)
			}
		})
	}
}

// TestStartWithErrorsIsRefused: without something that was adopted and still builds, or where that is not to
// be used, files with errors are not replaced by anything.
func TestStartWithErrorsIsRefused(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(t *testing.T, h *servetest.House){
		"nothing is remembered": func(_ *testing.T, h *servetest.House) { h.Memory = nil },
		"bootstrap":             func(_ *testing.T, h *servetest.House) { h.Memory.Bootstrap = true },
		"one call":              func(_ *testing.T, h *servetest.House) { h.Memory.ReadOnly = true },
		"something later could not be recorded": func(t *testing.T, h *servetest.House) {
			h.Memory.Build = func() ([]byte, error) { return nil, errors.New("no space left on device") }
			broken := h.Get("catalog/broken.cue")
			h.Set("catalog/broken.cue", "package catalog\n\ntools: x: {effect: \"read\", description: \"X.\", binding: jq: \".\"}\n")
			if err := h.Open(t); err == nil {
				t.Error("a directory was started with the record of a build")
			}
			h.Memory.Build = nil
			if err := h.Open(t); err != nil {
				t.Fatal(err)
			}
			h.Set("catalog/broken.cue", strings.Replace(h.Get("catalog/broken.cue"), "X.", "Y.", 1))
			h.Memory.Build = func() ([]byte, error) { return nil, errors.New("no space left on device") }
			h.MustReload(t, "adopted")
			h.Close()
			h.Memory.Build = nil
			h.Set("catalog/broken.cue", broken)
		},
		"the same files are recorded": func(t *testing.T, h *servetest.House) {
			was, err := h.Memory.Record.Load()
			if err != nil {
				t.Fatal(err)
			}
			was.Snapshot, _ = (loader.Tree{FS: h.Files}).Snapshot(t.Context())
			if err := h.Memory.Record.Save(*was); err != nil {
				t.Fatal(err)
			}
		},
		"what is recorded does not build": func(t *testing.T, h *servetest.House) {
			was, err := h.Memory.Record.Load()
			if err != nil {
				t.Fatal(err)
			}
			other := fstest.MapFS{"catalog/other.cue": {Data: []byte("package catalog\n\ntools: y: {")}}
			for name, file := range h.Files {
				other[name] = file
			}
			was.Snapshot, _ = (loader.Tree{FS: other}).Snapshot(t.Context())
			if err := h.Memory.Record.Save(*was); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := servetest.NewHouse(t)
			h.Remembering(t)
			if err := h.Open(t); err != nil {
				t.Fatal(err)
			}
			h.Close()
			h.Set("catalog/broken.cue", "package catalog\n\ntools: x: {")
			prepare(t, h)
			var refused *daemon.RefusedError
			if err := h.Open(t); !errors.As(err, &refused) || !strings.Contains(err.Error(), "catalog/broken.cue:3:") {
				t.Fatalf("got %v", err)
			}
			if lost := "what was adopted last can't be served in place of these files: "; strings.Contains(refused.Error(), lost) != (name == "what is recorded does not build" || name == "something later could not be recorded") {
				t.Errorf("got %v", refused)
			}
		})
	}
}

// TestLastPolicyIsBroken: a policy that was adopted and does not load any more refuses every other file.
func TestLastPolicyIsBroken(t *testing.T) {
	t.Parallel()
	h := servetest.NewHouse(t)
	record := h.Remembering(t)
	if err := h.Open(t); err != nil {
		t.Fatal(err)
	}
	h.Close()
	was, err := record.Load()
	if err != nil {
		t.Fatal(err)
	}
	h.Set("policy/broken.rego", "package catalogd.call\n\nallow if nothing.like.that(1)\n")
	if was.Snapshot, _ = (loader.Tree{FS: h.Files}).Snapshot(t.Context()); was.Snapshot == nil {
		t.Fatal("no snapshot")
	}
	if err := record.Save(*was); err != nil {
		t.Fatal(err)
	}
	delete(h.Files, "policy/broken.rego")
	if err := h.Open(t); err == nil || !strings.Contains(err.Error(), "the policy that was adopted last can't be asked about these files: policy/broken.rego:3:") ||
		!strings.Contains(err.Error(), "--bootstrap") {
		t.Errorf("got %v", err)
	}
	h.Memory.Bootstrap = true
	if err := h.Open(t); err != nil || h.Status().Generation.Adopted != "bootstrap" {
		t.Errorf("afresh: %v", err)
	}
	if now, err := record.Load(); err != nil || now.Snapshot.Digest() != h.Status().Generation.ID {
		t.Errorf("recorded is %v, %v", now, err)
	}
}

// TestAdoptionThatCannotBeRecorded: it goes on, and the log says what that means.
func TestAdoptionThatCannotBeRecorded(t *testing.T) {
	t.Parallel()
	h := servetest.NewHouse(t)
	record := h.Remembering(t)
	if err := os.MkdirAll(record.Path(), 0o700); err != nil {
		t.Fatal(err)
	}
	h.Memory.Bootstrap = true
	if err := h.Open(t); err != nil {
		t.Fatal(err)
	}
	if log := h.Log.String(); !strings.Contains(log, "the adoption is not recorded") {
		t.Errorf("the log:\n%s", log)
	}
}
