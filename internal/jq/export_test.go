package jq

// Kept is the number of compiled programs that r keeps.
func (r *InProcess) Kept() int { return len(r.programs) }
