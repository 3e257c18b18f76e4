package registry

// ValidName reports whether s can be the name of a tool, server, branch or function, #Name in schema.cue: a letter
// or _, then up to 62 letters, digits, _ or -.
func ValidName(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_'
		if !letter && (i == 0 || c != '-' && (c < '0' || c > '9')) {
			return false
		}
	}
	return 0 < len(s) && len(s) <= 63
}
