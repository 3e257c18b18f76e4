package catalogd.call_test

import data.catalogd.call
import data.catalogd.list

ask(branch, tool) := {
	"branch": {"name": branch, "labels": {}},
	"tool": {"name": tool, "effect": "read", "tags": [], "binding": "jq", "server": "", "trust": "", "deprecated": false},
	"principal": {"name": "local", "groups": []},
	"arguments": {"x": 1},
	"time": "2026-11-30T01:02:03Z",
}

one_branch := {"branches": {"default": {"tools": ["*"]}}}

test_a_branch_with_an_entry_may_call if {
	answer := call with input as ask("default", "t") with data.access as one_branch
	answer == {"allow": true, "deny": set()}
}

test_another_branch_may_not if {
	answer := call with input as ask("other", "t") with data.access as one_branch
	not answer.allow
	count(answer.deny) == 1
}

test_nothing_without_data if {
	not call.allow with input as ask("default", "t") with data.access as {}
}

# What is listed is what can be called (threat T3).
test_list_is_call[sprintf("%s %s", [branch, tool])] if {
	some branch in ["default", "research", "other"]
	some tool in ["t", "admin_x", "get_a"]
	access := {"branches": {"default": {"tools": ["*"], "deny": ["admin_*"]}, "research": {"tools": ["get_*"]}}}
	listed := list with input as object.remove(ask(branch, tool), ["arguments", "time"]) with data.access as access
	called := call with input as ask(branch, tool) with data.access as access
	listed == called
}
