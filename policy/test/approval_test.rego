package catalogd.lib.approval_test

import data.catalogd.call

ask(tool, principal) := {
	"branch": {"name": "b", "labels": {}},
	"tool": object.union({"name": "delete_page", "effect": "write", "tags": [], "binding": "http", "server": "", "trust": "api", "deprecated": false}, tool),
	"principal": principal,
	"arguments": {},
	"time": "2026-11-30T01:02:03Z",
	"rate": {"minute": 0, "hour": 0},
}

ann := {"name": "ann", "groups": ["ops"], "admin": true, "local": false}

operator := {"name": "local", "groups": [], "admin": true, "local": true}

access(approve) := {"branches": {"b": {"tools": ["*"], "approve": approve}}}

page := {"groups": ["ops"], "reason": "it can't be undone", "expires": "4h"}

default approval(_, _, _) := "none"

approval(tool, principal, approve) := a if {
	a := call.require_approval with input as ask(tool, principal) with data.access as access(approve)
}

test_no_approval_is_asked_by_default if {
	answer := call with input as ask({}, ann) with data.access as {"branches": {"b": {"tools": ["*"]}}}
	answer.allow
	not "require_approval" in object.keys(answer)
}

test_an_entry_asks_for_it if approval({}, ann, {"delete_*": page}) == page

test_other_tools_need_none[what] if {
	some what, tool in {"another name": {"name": "note"}, "a tool that reads": {"effect": "read"}}
	approval(tool, ann, {"delete_*": page}) == "none"
	call.allow with input as ask(tool, ann) with data.access as access({"delete_*": page})
}

test_another_branch_asks_for_nothing if {
	other := {"branches": {"b": {"tools": ["*"]}, "c": {"tools": ["*"], "approve": {"*": page}}}}
	answer := call with input as ask({}, ann) with data.access as other
	not "require_approval" in object.keys(answer)
}

# Nobody else has a token, so that the operator may approve what it asks for itself.
test_the_operator_may_approve_its_own if {
	approval({}, operator, {"delete_*": page}) == object.union(page, {"self": true})
	approval({}, operator, {"delete_*": object.union(page, {"self": false})}).self
}

# A token whose holder is called as the operator is, or administers the daemon, does not.
test_nobody_else_may[principal.name] if {
	some principal in [ann, object.union(ann, {"name": "local", "admin": true})]
	approval({}, principal, {"delete_*": page}) == page
}

test_two_entries_are_refused if {
	approve := {"delete_*": page, "*_page": {"self": true}}
	answer := call with input as ask({}, ann) with data.access as access(approve)
	answer.deny == {"several entries of approve in policy/access/data.yaml fit the tool delete_page: *_page, delete_*; make one narrower"}
	not "require_approval" in object.keys(answer)
}

test_what_is_not_granted_asks_for_nothing if {
	denied := {"branches": {"b": {"tools": ["note"], "approve": {"*": page}}}}
	answer := call with input as ask({}, ann) with data.access as denied
	not answer.allow
	not "require_approval" in object.keys(answer)
}
