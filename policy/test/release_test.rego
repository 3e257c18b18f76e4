package catalogd.release_test

import data.catalogd.release

ask(branch, tool) := {
	"branch": {"name": branch, "labels": {}},
	"tool": {"name": tool, "effect": "write", "tags": [], "binding": "http", "server": "", "trust": "api", "deprecated": false},
	"principal": {"name": "ann", "groups": [], "admin": false, "local": false},
	"arguments": {"id": 7},
	"intent": {
		"id": "0123456789abcdef0123456789abcdef", "staged": "2026-11-30T01:02:03Z", "age": 60, "attempt": 1, "repeatable": false, "keyed": false,
		"policy_changed": false,
	},
	"time": "2026-11-30T01:03:03Z",
}

access := {"branches": {"default": {"tools": ["*"], "deny": ["admin_*"]}, "readers": {"tools": ["*"], "effects": ["read"]}}}

test_what_may_be_called_is_released if {
	answer := release with input as ask("default", "note") with data.access as access
	answer == {"allow": true, "deny": set()}
}

# What was granted when the call came, and is not any more.
test_what_was_taken_away_is_refused[sprintf("%s %s", [branch, tool])] if {
	some [branch, tool] in [["other", "note"], ["default", "admin_note"], ["readers", "note"]]
	answer := release with input as ask(branch, tool) with data.access as access
	not answer.allow
	count(answer.deny) == 1
}

test_nothing_known_is_denied if {
	answer := release with input as {}
	not answer.allow
}
