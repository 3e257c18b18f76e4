package jq

// Grow lets a program grow the heap by so many bytes, so that a test need not make 256 MiB.
func (p *Program) Grow(bytes uint64) { p.growth = bytes }
