package generation

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/internal/secret"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Secret is a secret that trusted servers and tools get.
type Secret struct {
	// Reference is env:NAME or file:PATH.
	Reference string `json:"reference"`
	// Users are the servers and tools, by kind and name.
	Users []SecretUser `json:"users"`
	// Missing says why this process can't read it; empty if it can. Calls that need it fail.
	Missing string `json:"missing,omitempty"`
}

// SecretUser is a server or tool that gets a secret.
type SecretUser struct {
	// Kind is "server" or "tool".
	Kind string `json:"kind"`
	// Name is its name in the catalog.
	Name string `json:"name"`
	// Pos is where it is declared.
	Pos problem.Position `json:"pos"`
}

// String returns the secret with its users, such as "SHOP_KEY (order, server books)": variables by their name, files
// as file:PATH.
func (s Secret) String() string {
	users := make([]string, len(s.Users))
	for i, u := range s.Users {
		users[i] = u.Name
		if u.Kind == "server" {
			users[i] = "server " + u.Name
		}
	}
	return strings.TrimPrefix(s.Reference, "env:") + " (" + strings.Join(users, ", ") + ")"
}

// Secrets returns the secrets of the servers and tools that the policy lets be reached, by reference. Each is read,
// to see whether it is there, and not kept.
func (g *Generation) Secrets() []Secret {
	declared := g.declaredSecrets()
	users := map[string][]SecretUser{}
	for _, r := range g.reaches {
		if !r.Decision.Allow {
			continue
		}
		for ref := range declared[[2]string{r.Kind, r.Name}] {
			users[ref] = append(users[ref], SecretUser{r.Kind, r.Name, r.Pos})
		}
	}
	var all []Secret
	for _, ref := range slices.Sorted(maps.Keys(users)) {
		s := Secret{Reference: ref, Users: users[ref]}
		slices.SortFunc(s.Users, func(a, b SecretUser) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
		if _, err := secret.Read(ref, g.root); err != nil {
			s.Missing = err.Error()
		}
		all = append(all, s)
	}
	return all
}

// MissingSecrets returns the Secrets that can't be read.
func (g *Generation) MissingSecrets() []Secret {
	return slices.DeleteFunc(g.Secrets(), func(s Secret) bool { return s.Missing == "" })
}

// declaredSecrets returns the references of each declaration, by kind and name.
func (g *Generation) declaredSecrets() map[[2]string]map[string]bool {
	all := map[[2]string]map[string]bool{}
	add := func(kind, name string, values map[string]registry.Value) {
		for _, v := range values {
			if v.Secret == "" {
				continue
			}
			key := [2]string{kind, name}
			if all[key] == nil {
				all[key] = map[string]bool{}
			}
			all[key][v.Secret] = true
		}
	}
	for _, s := range g.registry.Servers() {
		if s.Stdio != nil {
			add("server", s.Name, s.Stdio.Env)
		}
		if s.HTTP != nil {
			add("server", s.Name, s.HTTP.Headers)
		}
	}
	for _, e := range g.registry.Entries() {
		t := e.Declared()
		if t.Binding.Exec != nil {
			add("tool", t.Name, t.Binding.Exec.Env)
		}
		if t.Binding.HTTP != nil {
			add("tool", t.Name, t.Binding.HTTP.Headers)
			add("tool", t.Name, t.Binding.HTTP.Query)
		}
	}
	return all
}
