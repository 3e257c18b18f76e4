package secret

import (
	"maps"
	"slices"
	"strings"
)

const (
	// mark stands in the place of a declared secret.
	mark = "***"
	// minMaskedLine is the length in bytes from which one line of a secret of several lines is masked by
	// itself.
	minMaskedLine = 8
)

// MaskerFor returns a Masker of the secrets that the values refer to, read now, and of the further texts; nil
// where there are none. A secret of several lines is also masked line by line. Texts shorter than MinText
// bytes are not masked: that would damage innocent text and protect nothing.
func MaskerFor(values map[string]Value, root string, further ...string) *Masker {
	secrets := slices.Clone(further)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if values[name].Secret == "" {
			continue
		}
		// A secret that can't be read now was not handed out either; its use has reported that.
		if value, err := Read(values[name].Secret, root); err == nil {
			secrets = append(secrets, value)
		}
	}
	var masked []string
	for _, value := range secrets {
		if len(value) < MinText {
			continue
		}
		masked = append(masked, value)
		for line := range strings.Lines(value) {
			if line = strings.TrimSpace(line); len(line) >= minMaskedLine {
				masked = append(masked, line)
			}
		}
	}
	return NewMasker(mark, masked, nil)
}
