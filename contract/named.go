package contract

// formatWords describes the formats of JSON Schema in words, with an example of each.
var formatWords = map[string]string{
	"date-time": "a date and time such as 2006-01-02T15:04:05Z",
	"date":      "a date such as 2006-01-02",
	"time":      "a time such as 15:04:05Z",
	"duration":  "a duration such as P1DT2H",
	"uuid":      "a UUID such as 123e4567-e89b-12d3-a456-426614174000",
	"email":     "an e-mail address",
	"hostname":  "a host name",
	"ipv4":      "an IPv4 address such as 192.0.2.1",
	"ipv6":      "an IPv6 address such as 2001:db8::1",
	"uri":       "a URI such as https://example.com/path",
}

// The patterns of CUE builtins that accept more than a format of JSON Schema, as internal/derive writes them.
const (
	// PatternDateTime leaves what a pattern can't express, the days of the months, to the format. It refuses
	// leap seconds and lower-case letters, which RFC 3339 allows and Go does not.
	PatternDateTime = `^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{1,2}:[0-9]{2}:[0-5][0-9](?:[.,][0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})$`
	// PatternDuration also accepts durations over 292 years.
	PatternDuration = `^[+-]?(?:0|(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)$`
	// PatternUUID accepts the four forms that Go reads.
	PatternUUID = `^(?:(?:[Uu][Rr][Nn]:[Uu][Uu][Ii][Dd]:)?` + hyphened + `|\{` + hyphened + `\}|[0-9A-Fa-f]{32})$`
	hyphened    = `[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}`
	// PatternIPv6 is an address with or without a zone, PatternIP one of either version, PatternCIDR a
	// prefix.
	PatternIPv6 = `^[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(?:%[^\n]+)?$`
	PatternIP   = `^[0-9A-Fa-f:.]+(?:%[^\n]+)?$`
	PatternCIDR = `^[0-9A-Fa-f:.]+/[0-9]{1,3}$`
)

// patternWords describes these patterns in words.
var patternWords = map[string]string{
	PatternDateTime: formatWords["date-time"],
	PatternDuration: "a duration such as 1h30m or 500ms",
	PatternUUID:     formatWords["uuid"],
	PatternIPv6:     formatWords["ipv6"],
	PatternIP:       "an IP address such as 192.0.2.1 or 2001:db8::1",
	PatternCIDR:     "an IP prefix such as 192.0.2.0/24",
}
