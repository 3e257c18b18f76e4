package mcpserver_test

import (
	"sync"
	"testing"
	"time"

	"github.com/catalogd/catalogd/internal/mcpserver"
)

// TestThreatState has T14 for the state by itself: it is taken once, in time, by whom and for what it was made, and no
// other text is.
func TestThreatState(t *testing.T) {
	t.Parallel()
	made := mcpserver.StateSubject{Branch: "b", Principal: "p", Tool: "t", Dialect: "mcp", Arguments: `{"a":1,"b":"x"}`}
	begin := time.Unix(1_800_000_000, 0)
	var mu sync.Mutex
	now := begin
	set := func(d time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		now = begin.Add(d)
	}
	clock := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	states := mcpserver.NewStates(clock)
	for name, of := range map[string]mcpserver.StateSubject{
		"T14/other branch":    {"c", "p", "t", "mcp", made.Arguments},
		"T14/other principal": {"b", "q", "t", "mcp", made.Arguments},
		"T14/other tool":      {"b", "p", "u", "mcp", made.Arguments},
		"T14/other dialect":   {"b", "p", "t", "openai", made.Arguments},
		"T14/moved boundary":  {"bp", "", "t", "mcp", made.Arguments},
		"T14/changed args":    {"b", "p", "t", "mcp", `{"a":2,"b":"x"}`},
		"T14/more args":       {"b", "p", "t", "mcp", `{"a":1,"b":"x","c":null}`},
		"T14/another number":  {"b", "p", "t", "mcp", `{"a":1.0,"b":"x"}`},
	} {
		t.Run(name, func(t *testing.T) {
			state := states.Close(made, "kept")
			if got, err := states.Open(of, state); err == nil {
				t.Errorf("it was taken: %q", got)
			}
			if got, err := states.Open(made, state); err != nil || got != "kept" {
				t.Errorf("after that, its own call got %q, %v", got, err)
			}
		})
	}
	t.Run("T14/the same arguments in another order", func(t *testing.T) {
		if got, err := states.Open(mcpserver.StateSubject{"b", "p", "t", "mcp", `{ "b":"\u0078", "a":1 }`}, states.Close(made, "kept")); err != nil || got != "kept" {
			t.Errorf("%q, %v", got, err)
		}
	})
	t.Run("T14/replay", func(t *testing.T) {
		state := states.Close(made, "kept")
		if _, err := states.Open(made, state); err != nil {
			t.Fatal(err)
		}
		for _, after := range []time.Duration{0, 9 * time.Minute, 11 * time.Minute, time.Hour} {
			set(after)
			if _, err := states.Open(made, state); err == nil {
				t.Errorf("it was taken again %s later", after)
			}
		}
		set(0)
	})
	t.Run("T14/expired", func(t *testing.T) {
		early, late := states.Close(made, "kept"), states.Close(made, "kept")
		set(10*time.Minute - time.Nanosecond)
		if _, err := states.Open(made, early); err != nil {
			t.Errorf("in time: %v", err)
		}
		set(10 * time.Minute)
		if _, err := states.Open(made, late); err == nil {
			t.Error("it was taken too late")
		}
		set(0)
	})
	t.Run("T14/another process", func(t *testing.T) {
		if _, err := mcpserver.NewStates(clock).Open(made, states.Close(made, "kept")); err == nil {
			t.Error("it was taken")
		}
	})
	t.Run("T14/other texts", func(t *testing.T) {
		state := states.Close(made, "kept")
		for i := range len(state) {
			for _, c := range []byte{state[i] ^ 1, 'A', 'Z', '=', '\n'} {
				if c != state[i] {
					refused(t, states, made, state[:i]+string(c)+state[i+1:])
				}
			}
			refused(t, states, made, state[:i])
			refused(t, states, made, state[:i]+"\n"+state[i:])
		}
		refused(t, states, made, state+"=")
		refused(t, states, made, state+"A")
		if _, err := states.Open(made, state); err != nil {
			t.Errorf("the state itself: %v", err)
		}
	})
}

func refused(t *testing.T, states mcpserver.States, of mcpserver.StateSubject, state string) {
	t.Helper()
	if got, err := states.Open(of, state); err == nil {
		t.Errorf("%q was taken for %q", state, got)
	}
}

// Processes with one key accept each other's states, each once; those with another key, or without one, accept none.
func TestSharedStates(t *testing.T) {
	t.Parallel()
	key := []byte("0123456789abcdef0123456789abcdef")
	of := mcpserver.StateSubject{Branch: "b", Principal: "p", Tool: "t", Dialect: "mcp", Arguments: "{}"}
	one, other := mcpserver.NewSharedStates(key, "b"), mcpserver.NewSharedStates(key, "b")
	state := one.Close(of, "kept")
	for name, s := range map[string]mcpserver.States{
		"another key":    mcpserver.NewSharedStates([]byte("fedcba9876543210fedcba9876543210"), "b"),
		"another branch": mcpserver.NewSharedStates(key, "c"),
		"no key":         mcpserver.NewStates(time.Now),
	} {
		if got, err := s.Open(of, state); err == nil {
			t.Errorf("%s accepts it: %s", name, got)
		}
	}
	for name, s := range map[string]mcpserver.States{"the process that made it": one, "another one": other} {
		if got, err := s.Open(of, state); err != nil || got != "kept" {
			t.Errorf("%s: %q %v", name, got, err)
		}
		if _, err := s.Open(of, state); err == nil {
			t.Errorf("%s accepts it twice", name)
		}
	}
}
