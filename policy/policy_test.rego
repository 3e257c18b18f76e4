# What this policy must go on to answer: add the cases that matter to you. `catalogd test` runs them, and so does
# `opa test policy/`; a reload whose tests fail is not adopted. Tables of decisions in CUE are another way (docs/policy.md).
package policy_test

import data.catalogd.list
import future.keywords.not

shown(branch, tool) if {
	answer := list with input as {
		"branch": {"name": branch, "labels": {}},
		"tool": {"name": tool, "effect": "read", "tags": [], "binding": "jq", "server": "", "trust": "", "deprecated": false, "discovered": false},
		"principal": {"name": "local", "groups": []},
	}
	answer.allow
	count(answer.deny) == 0
}

test_a_branch_without_an_entry_sees_nothing if {
	not shown("unnamed", "slugify") with data.access as {"branches": {"default": {"tools": ["*"]}}}
}
