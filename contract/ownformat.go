package contract

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// ownFormats replace the library's checks that differ from CUE's, so that a format accepts what the builtin
// accepts from which it was derived. The library checks all other formats.
func ownFormats() []*jsonschema.Format {
	return []*jsonschema.Format{
		{Name: "date-time", Validate: ofText(isDateTime)},
		{Name: "ipv4", Validate: ofText(isIPv4)},
	}
}

// ofText converts a check of strings to one of values: a format does not restrict values of other types.
func ofText(check func(string) error) func(any) error {
	return func(v any) error {
		if s, ok := v.(string); ok {
			return check(s)
		}
		return nil
	}
}

// isDateTime accepts RFC 3339, section 5.6, and what Go, and with it CUE's time.Time, accepts beyond that:
// hours of one digit, a comma before the fraction and offsets up to +24:60.
func isDateTime(s string) error {
	_, err := time.Parse(time.RFC3339Nano, s)
	if err == nil {
		return nil
	}
	upper := strings.ToUpper(s)
	if len(upper) < len("2006-01-02T15:04:05Z") {
		return err
	}
	const seconds = len("2006-01-02T15:04:")
	leap := upper[seconds:seconds+2] == "60"
	if leap {
		upper = upper[:seconds] + "59" + upper[seconds+2:]
	}
	t, again := time.Parse(time.RFC3339Nano, upper)
	switch {
	case again != nil:
		return err
	case leap && t.UTC().Format("15:04:05") != "23:59:59":
		return fmt.Errorf("%q has a leap second that can't be", s)
	}
	return nil
}

// isIPv4 accepts a dotted quad (RFC 2673, section 3.2); the library also accepts signs in it.
func isIPv4(s string) error {
	a, err := netip.ParseAddr(s)
	if err == nil && !a.Is4() {
		err = fmt.Errorf("%q is not an IPv4 address", s)
	}
	return err
}
