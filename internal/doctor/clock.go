package doctor

import (
	"fmt"
	"time"
)

// tolerated is how far a clock may differ from a server's: the Date of an answer has whole seconds, and takes its way.
const tolerated = 30 * time.Second

// earliest is before every release of catalogd.
var earliest = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Clock checks this machine's clock, on which tokens, approvals and intents depend: that it was not set since began,
// and that it agrees with the clocks of servers that answered. dates maps them to this clock's lead.
func Clock(began, now time.Time, leads map[string]time.Duration) []Finding {
	const check, where = "clock", "this machine"
	const fix = "synchronise it (NTP); tokens, approvals and waiting calls expire by it"
	var found []Finding
	if now.Before(earliest) {
		found = append(found, Finding{check, Error, where, "it says " + now.UTC().Format(time.RFC3339) + ", which is before this program was made", fix})
	}
	monotonic, wall := now.Sub(began), now.Round(0).Sub(began.Round(0))
	if jump := wall - monotonic; jump.Abs() > time.Second {
		found = append(found, Finding{check, Warning, where, fmt.Sprintf("it was set by %v while this command ran", jump.Round(time.Millisecond)), fix})
	}
	for server, lead := range leads {
		if lead.Abs() > tolerated {
			direction := "ahead of"
			if lead < 0 {
				direction = "behind"
			}
			found = append(found, Finding{check, Warning, where, fmt.Sprintf("it is %v %s that of %s", lead.Abs().Round(time.Second), direction, server), fix})
		}
	}
	switch {
	case len(found) > 0:
	case len(leads) > 0:
		found = append(found, Finding{check, OK, where, fmt.Sprintf("it agrees with the servers that answered: %d", len(leads)), ""})
	default:
		found = append(found, Finding{check, OK, where, "no server was there to compare it with", ""})
	}
	return found
}
