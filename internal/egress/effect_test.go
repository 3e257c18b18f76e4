package egress_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/decision/trusttest"
	"github.com/catalogd/catalogd/internal/egress"
	"github.com/catalogd/catalogd/internal/secret"
)

// A child is given the idempotency key of its call, which nothing else can set.
func TestKeyVariable(t *testing.T) {
	t.Parallel()
	target := self(t, "env")
	variables := strings.Split(string(run(t, target, trust.Terms{}, egress.Command{Key: "k é"}, "").Stdout), "\x00")
	got := ""
	for _, v := range variables {
		if name, value, _ := strings.Cut(v, "="); name == trust.KeyVariable {
			got += value
		}
	}
	if got != "k é" {
		t.Errorf("the child got the key %q", got)
	}
	declared := self(t, "env")
	declared.Command.Env = []string{trust.KeyVariable}
	for name, tt := range map[string]struct {
		target trust.Target
		terms  trust.Terms
		c      egress.Command
	}{
		"a declaration sets it": {declared, trust.Terms{Env: declared.Command.Env}, egress.Command{Env: map[string]secret.Value{trust.KeyVariable: {Literal: "mine"}}}},
		"an entry sets it":      {target, trust.Terms{Env: []string{trust.KeyVariable}, Fixed: map[string]string{trust.KeyVariable: "mine"}}, egress.Command{Key: "k"}},
		"it holds a NUL byte":   {target, trust.Terms{}, egress.Command{Key: "k\x00"}},
	} {
		tt.c.Args = tt.target.Command.Args
		_, err := egress.Run(t.Context(), trusttest.New(tt.target, tt.terms), tt.target, tt.c, nil, 10)
		var unsent *egress.UnsentError
		if !errors.As(err, &unsent) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An error is unsent exactly where no program was started.
func TestRunUnsent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken")
	if err := os.WriteFile(broken, []byte("#!/no/such/interpreter\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	noProgram := trust.Target{Kind: trust.Exec, Command: &trust.Command{Declared: broken, Path: broken}}
	sleeps := self(t, "sleep")
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	marker := filepath.Join(dir, "marker")
	marks := self(t, "sleep", marker)
	late := until(t, func() bool { _, err := os.Stat(marker); return err == nil })
	for name, tt := range map[string]struct {
		ctx    context.Context
		target trust.Target
		args   []string
		env    map[string]secret.Value
		unsent bool
	}{
		"the program can't be started": {t.Context(), noProgram, nil, nil, true},
		"the call was cancelled":       {cancelled, sleeps, sleeps.Command.Args, nil, true},
		"another command line":         {t.Context(), sleeps, []string{"child"}, nil, true},
		"too long a command line":      {t.Context(), fromCall(sleeps), []string{"child", strings.Repeat("x", 4<<20)}, nil, true},
		"its time is up":               {late, marks, marks.Command.Args, nil, false},
	} {
		_, err := egress.Run(tt.ctx, trusttest.New(tt.target, trust.Terms{FromCall: tt.target.Command.FromCall}), tt.target, egress.Command{Args: tt.args, Env: tt.env, Grace: time.Second}, nil, 10)
		var unsent *egress.UnsentError
		if err == nil || errors.As(err, &unsent) != tt.unsent {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A pinned program that is found changed when it has started was started, so its error is not unsent.
func TestChangedWhileItStarts(t *testing.T) {
	t.Parallel()
	target := self(t, "env")
	program := filepath.Join(t.TempDir(), "program")
	const script = "#!/bin/sh\nexit 0\n"
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	target.Command.Declared, target.Command.Path, target.Command.Args = program, program, nil
	terms := trust.Terms{SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(script)))}
	touching, done := context.WithCancel(t.Context())
	defer done()
	go func() {
		for n := int64(1); touching.Err() == nil; n++ {
			if os.Chtimes(program, time.Unix(n, 0), time.Unix(n, 0)) != nil {
				return
			}
			time.Sleep(time.Duration(n%7) * 200 * time.Microsecond) // so that it is often unchanged until it starts
		}
	}()
	for range 10_000 {
		_, err := egress.Run(t.Context(), trusttest.New(target, terms), target, egress.Command{}, nil, 10)
		if err == nil || !strings.Contains(err.Error(), "was changed while it started") {
			continue
		}
		var unsent *egress.UnsentError
		if errors.As(err, &unsent) {
			t.Errorf("it is said that nothing was started: %v", err)
		}
		return
	}
	t.Error("it was never found changed")
}

// fromCall is a command whose one further element a call fills in.
func fromCall(target trust.Target) trust.Target {
	c := *target.Command
	c.Args, c.FromCall = []string{"child", "{x}"}, []string{"x"}
	target.Command = &c
	return target
}

// A child that is to finish does so, however much it writes, and its exit status is known.
func TestRunFinishes(t *testing.T) {
	t.Parallel()
	marker := filepath.Join(t.TempDir(), "marker")
	target := self(t, "floods-then-marks", marker)
	out, err := egress.Run(t.Context(), trusttest.New(target, trust.Terms{}), target, egress.Command{Args: target.Command.Args, Finish: true}, nil, 10)
	if err != nil || !out.TooLarge || len(out.Stdout) != 10 || out.Exit != (egress.Exit{Code: 4}) {
		t.Errorf("%+v, %v", out, err)
	}
	if _, err := os.Stat(marker); err != nil {
		t.Errorf("the child did not finish: %v", err)
	}
}
