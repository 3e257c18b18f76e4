package fair

// Waiting returns how many wait.
func (p *Places) Waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiting)
}

// Remembered returns how many users, branches and tools are counted.
func (p *Places) Remembered() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.users) + len(p.byName)
}
