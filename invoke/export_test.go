package invoke

// Len is how many counts there are.
func (r *Rates) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.by.All())
}
