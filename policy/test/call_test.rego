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
	answer == {"allow": true, "allow_resource": false, "allow_prompt": false, "deny": set(), "relay": set(), "elicitation_hosts": set()}
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
	listed == object.remove(called, ["elicitation_hosts", "relay"])
}

relaying := {"branches": {"default": {
	"tools": ["*"],
	"deny": ["ask_secrets"],
	"relay": {"logging": ["*"], "elicitation": ["ask_*"], "sampling": []},
}}}

# A server's questions and messages reach the client where the data names the tool, and nowhere else (row D18).
test_relay_by_tool[tool] if {
	some tool, want in {"t": {"logging"}, "ask_name": {"logging", "elicitation"}, "ask_secrets": set()}
	answer := call.relay with input as ask("default", tool) with data.access as relaying
	answer == want
}

test_hosts_are_those_of_the_branch if {
	hosts := object.union(relaying, {"branches": {"default": {"elicitation_hosts": ["login.example.com"]}}})
	call.elicitation_hosts == {"login.example.com"} with input as ask("default", "ask_me") with data.access as hosts
	call.elicitation_hosts == set() with input as ask("other", "ask_me") with data.access as hosts
}

test_relay_of_another_branch_is_empty if {
	call.relay == set() with input as ask("other", "t") with data.access as relaying
}
