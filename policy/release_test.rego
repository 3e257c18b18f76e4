package catalogd.release_test

import data.catalogd.release

ask(branch) := {"branch": {"name": branch, "labels": {}}, "tool": {"name": "t", "effect": "read", "tags": []}}

test_who_sees_the_tool if {
	answer := release with input as ask("default") with data.access.branches as {"default": {"tools": ["*"]}}
	answer.allow
	count(answer.deny) == 0
}

test_another_branch if {
	answer := release with input as ask("other") with data.access.branches as {"default": {"tools": ["*"]}}
	not answer.allow
}

test_nothing_known_is_denied if {
	answer := release with input as {}
	not answer.allow
}
