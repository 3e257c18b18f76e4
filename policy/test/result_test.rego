package catalogd.result_test

import data.catalogd.result

ask(branch) := {"branch": {"name": branch, "labels": {}}, "tool": {"name": "t", "effect": "read", "tags": []}}

test_who_sees_the_tool if {
	answer := result with input as ask("default") with data.access.branches as {"default": {"tools": ["*"]}}
	answer.allow
	count(answer.deny) == 0
}

test_another_branch if {
	answer := result with input as ask("other") with data.access.branches as {"default": {"tools": ["*"]}}
	not answer.allow
}

test_nothing_known_is_denied if {
	answer := result with input as {}
	not answer.allow
}
