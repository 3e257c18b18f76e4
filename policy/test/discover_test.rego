package catalogd.discover_test

import data.catalogd.discover

same := {
	"change": "identical",
	"server": {"locked": {"name": "files"}, "offered": {"name": "files"}},
}

test_identical_is_used if {
	answer := discover with input as same
	answer == {"allow": true}
}

test_anything_else_waits if {
	every change in {
		"new", "removed", "renamed", "arguments_widened", "arguments_narrowed", "result_changed", "description_only",
		"annotation_lowered", "unusable",
	} {
		answer := discover with input as object.union(same, {"change": change})
		answer == {"allow": false, "quarantine": true}
	}
}

test_another_server_waits if {
	answer := discover with input as object.union(same, {"server": {"offered": {"name": "other"}}})
	answer == {"allow": false, "quarantine": true}
}

test_nothing_known_waits if {
	answer := discover with input as {}
	answer == {"allow": false, "quarantine": true}
}
