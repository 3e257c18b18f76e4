// Package grant holds the key that attempts are made with. The compiler lets no package outside of internal/intent import it.
package grant

// Key makes attempts. Its zero value makes none.
type Key struct{ valid bool }

// New is a key.
func New() Key { return Key{true} }

// Valid reports whether New made the key.
func (k Key) Valid() bool { return k.valid }
