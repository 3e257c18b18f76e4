package mcpserver

// Reauthorize ends the sessions and streams of callers whose token was revoked, has expired or was changed;
// their calls in flight finish. Call it after the tokens have changed.
func (f *Server) Reauthorize() {
	if f.Tokens == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for at, b := range f.branches {
		if !f.authorized(b) {
			b.end()
			delete(f.branches, at)
		}
	}
	for b := range f.stdioBranches {
		if !f.authorized(b) {
			b.end()
		}
	}
}

// authorized reports whether the caller of a branch may still use it.
func (f *Server) authorized(b *branch) bool {
	return b.caller.Token == nil || b.caller.SameAs(f.Tokens.Get(b.caller.Token.Hash), b.name)
}
