package lockfile

// Aimed reports whether a text holds instructions, and LooksClosely whether Findings looks for them.
func Aimed(text string) bool        { return aimed.MatchString(text) }
func LooksClosely(text string) bool { return !plainASCII(text) || mayAim(text) }
