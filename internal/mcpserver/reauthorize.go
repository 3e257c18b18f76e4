package mcpserver

// Reauthorize ends the sessions and streams of callers whose token was revoked, has expired or was changed;
// their calls in flight finish. Call it after the tokens have changed.
func (s *Server) Reauthorize() {
	if s.Tokens == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, b := range s.branches {
		if !s.authorized(b) {
			b.end()
			delete(s.branches, at)
		}
	}
	for b := range s.stdioBranches {
		if !s.authorized(b) {
			b.end()
		}
	}
}

// authorized reports whether the caller of a branch may still use it.
func (s *Server) authorized(b *branch) bool {
	return b.caller.Token == nil || b.caller.SameAs(s.Tokens.Get(b.caller.Token.Hash), b.root)
}
