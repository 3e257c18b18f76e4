// Package grant holds the key without which no trust can be made. It lies under decision/internal, so the compiler lets
// no package outside decision/ name it. That alone would not do: an unnamed struct{}{} is assignable to a type Key
// struct{}, and a type parameter can be inferred to be Key by whoever calls a function with trust.New. So the zero Key
// is worth nothing, and only Issue makes another one.
package grant

// Key is needed by trust.New. The zero Key opens nothing.
type Key struct{ issued bool }

// Issue makes a Key. The engine's connect decision does, when a policy has allowed, and decision/trusttest.
func Issue() Key { return Key{issued: true} }

// Valid reports whether the key came from Issue.
func (k Key) Valid() bool { return k.issued }
