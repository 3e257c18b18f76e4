package invoke

import (
	"testing"
	"time"

	"github.com/catalogd/catalogd/internal/intent"
)

// TestAgeOfAnIntent: what the release decision learns of an intent's age follows the clock of the store.
func TestAgeOfAnIntent(t *testing.T) {
	t.Parallel()
	staged := time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)
	for after, want := range map[time.Duration]int{0: 0, 1900 * time.Millisecond: 1, time.Hour: 3600, -time.Hour: 0} {
		if got := policyIntent(intent.Intent{Staged: staged}, "", staged.Add(after)).Age; got != want {
			t.Errorf("age after %v: got %d s, want %d s", after, got, want)
		}
	}
}
