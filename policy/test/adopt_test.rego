package catalogd.adopt_test

import data.catalogd.adopt

generation(visible) := {
	"generation": "sha256:1", "policy": "sha256:2", "tools": ["t"], "servers": [], "trusted": {},
	"branches": [name | some name, _ in visible], "visible": visible,
}

change(serving, candidate) := {
	"bootstrap": false, "serving": generation(serving), "candidate": generation(candidate), "changes": {},
}

default adopted(_) := false

adopted(q) if {
	answer := adopt with input as q
	answer.allow
	count(answer.deny) == 0
}

test_bootstrap if adopted({"bootstrap": true, "candidate": generation({"b": ["t"]}), "changes": {}})

test_bootstrap_without_tools if adopted({"bootstrap": true, "candidate": generation({}), "changes": {}})

test_neither_bootstrap_nor_serving if {
	not adopted({"bootstrap": false, "candidate": generation({"b": ["t"]}), "changes": {}})
}

test_failing_tests if {
	q := object.union(change({"b": ["t"]}, {"b": ["t"]}), {"tests": {"run": true, "passed": 3, "failed": 2, "skipped": 0, "failures": ["catalogd.x_test.test_a", "catalogd.x_test.test_b"]}})
	not adopted(q)
	adopt.deny == {"2 tests of the policy fail, such as catalogd.x_test.test_a: `catalogd test` says why"} with input as q
}

test_passing_tests if adopted(object.union(
	change({"b": ["t"]}, {"b": ["t"]}),
	{"tests": {"run": true, "passed": 3, "failed": 0, "skipped": 1, "failures": []}},
))

test_more_tools if adopted(change({"b": ["t"]}, {"b": ["t", "u"]}))

test_fewer_tools if adopted(change({"b": ["t", "u"]}, {"b": ["t"]}))

test_other_tools if adopted(change({"b": ["t"]}, {"b": ["u"]}))

test_a_new_branch if adopted(change({"b": ["t"]}, {"b": ["t"], "c": []}))

test_a_branch_loses_all if {
	q := change({"b": ["t"], "c": ["t"]}, {"b": ["t"], "c": []})
	not adopted(q)
	adopt.deny == {"branch c would lose all of its tools: name it in may_empty of policy/adopt/data.yaml first, if that is meant"} with input as q
}

test_a_branch_without_an_answer_lost_all if {
	q := change({"b": ["t"]}, {"b": ["t"]})
	not adopted(json.patch(q, [{"op": "replace", "path": "/candidate/visible", "value": {}}]))
}

test_a_branch_that_had_none if adopted(change({"b": ["t"], "c": []}, {"b": ["t"], "c": []}))

test_may_empty if {
	q := change({"b": ["t"], "c": ["t"]}, {"b": ["t"], "c": []})
	adopt.allow with input as q with data.adopt.may_empty as ["c"]
	count(adopt.deny) == 0 with input as q with data.adopt.may_empty as ["c"]
}

test_a_branch_is_removed if adopted(change({"b": ["t"], "c": ["t"]}, {"b": ["t"]}))

test_every_branch_is_removed if not adopted(change({"b": ["t"]}, {}))
