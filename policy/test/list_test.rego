package catalogd.list_test

import data.catalogd.list

ask(branch, tool) := {
	"branch": {"name": branch, "labels": {"audience": "public"}},
	"tool": object.union(
		{"name": "t", "effect": "read", "tags": [], "binding": "jq", "server": "", "trust": "", "deprecated": false, "discovered": false},
		tool,
	),
	"principal": {"name": "local", "groups": []},
}

default visible(_, _) := false

visible(q, access) if {
	answer := list with input as q with data.access as access
	answer.allow
	count(answer.deny) == 0
}

reasons(q, access) := r if {
	r := list.deny with input as q with data.access as access
}

test_an_entry_shows_read_and_write[effect] if {
	some effect in ["read", "write"]
	visible(ask("b", {"effect": effect}), {"branches": {"b": {"tools": ["*"]}}})
}

test_a_branch_without_an_entry_sees_nothing[name] if {
	some name in ["", "other", "Default", "default "]
	answer := list with input as ask(name, {}) with data.access as {"branches": {"default": {"tools": ["*"]}}}
	not answer.allow
	answer.deny == {sprintf("branch %s is not named in policy/access/data.yaml", [name])}
}

test_nothing_without_data if {
	not visible(ask("b", {}), {})
	not visible(ask("b", {}), {"branches": {}})
	not visible(ask("b", {}), {"branches": {"b": {}}})
	not visible(ask("b", {}), {"branches": {"b": {"tools": []}}})
	not visible(ask("b", {}), {"branches": {"b": {"tools": "*"}}})
}

test_patterns[case.pattern] if {
	some case in [
		{"pattern": "*", "want": true},
		{"pattern": "get_*", "want": true},
		{"pattern": "*_weather", "want": true},
		{"pattern": "get_*er", "want": true},
		{"pattern": "get_weather", "want": true},
		{"pattern": "get_weathe", "want": false},
		{"pattern": "get_weather?", "want": false},
		{"pattern": "get_[w]eather", "want": false},
		{"pattern": "{get_weather,x}*", "want": false},
		{"pattern": "et_*", "want": false},
		{"pattern": "", "want": false},
	]
	visible(ask("b", {"name": "get_weather"}), {"branches": {"b": {"tools": [case.pattern]}}}) == case.want
}

test_deny_takes_away if {
	access := {"branches": {"b": {"tools": ["*"], "deny": ["admin_*"]}}}
	visible(ask("b", {}), access)
	not visible(ask("b", {"name": "admin_x"}), access)
	reasons(ask("b", {"name": "admin_x"}), access) == {"policy/access/data.yaml denies branch b the tool admin_x"}
}

test_effects if {
	access := {"branches": {"b": {"tools": ["*"], "effects": ["read"]}}}
	visible(ask("b", {}), access)
	not visible(ask("b", {"effect": "write"}), access)
}

test_declared_reads_are_declared_and_read if {
	access := {"branches": {"b": {"declared_reads": ["*"]}}}
	visible(ask("b", {}), access)
	not visible(ask("b", {"effect": "write"}), access)
	not visible(ask("b", {"binding": "mcp", "server": "s", "discovered": true}), access)
	visible(ask("b", {"binding": "mcp", "server": "s"}), access)
	not visible(json.remove(ask("b", {}), ["/tool/discovered"]), access) # of a catalogd that doesn't say it
	not visible(ask("b", {"name": "u"}), {"branches": {"b": {"declared_reads": ["t*"]}}})
	not visible(ask("b", {}), {"branches": {"b": {"declared_reads": ["*"], "effects": ["write"]}}})
	not visible(ask("b", {}), {"branches": {"b": {"declared_reads": ["*"], "deny": ["t"]}}})
	not visible(ask("other", {}), access)
}

test_tools_names_what_declared_reads_leaves_out if {
	access := {"branches": {"b": {"declared_reads": ["*"], "tools": ["w", "s_*"]}}}
	visible(ask("b", {"name": "w", "effect": "write"}), access)
	visible(ask("b", {"name": "s_x", "effect": "write", "binding": "mcp", "server": "s", "discovered": true}), access)
	not visible(ask("b", {"name": "v", "effect": "write"}), access)
}

# The built-in tools about intents come with an entry, whatever tools it names, and can be taken away by name.
test_built_in_tools_need_no_name if {
	get := {"name": "intent_get", "binding": "intent"}
	visible(ask("b", get), {"branches": {"b": {"tools": ["x"], "effects": ["write"]}}})
	visible(ask("b", get), {"branches": {"b": {"tools": []}}})
	not visible(ask("other", get), {"branches": {"b": {"tools": ["*"]}}})
	not visible(ask("b", get), {"branches": {"b": {"tools": ["*"], "deny": ["intent_*"]}}})
	not visible(ask("b", object.union(get, {"binding": "jq"})), {"branches": {"b": {"tools": ["x"]}}})
}

hiding(rule) := {"branches": {"b": {"tools": ["*"]}}, "hide": [rule]}

test_labels_hide if {
	access := hiding({"labels": {"audience": "public"}, "tags": ["internal"], "reason": "not for the public"})
	visible(ask("b", {}), access)
	not visible(ask("b", {"tags": ["x", "internal"]}), access)
	reasons(ask("b", {"tags": ["internal"]}), access) == {"not for the public"}
}

test_other_labels_do_not_hide if {
	visible(ask("b", {"tags": ["internal"]}), hiding({"labels": {"audience": "staff"}, "tags": ["internal"]}))
}

test_all_labels_must_fit if {
	rule := {"labels": {"audience": "public", "team": "x"}, "tags": ["internal"]}
	visible(ask("b", {"tags": ["internal"]}), hiding(rule))
}

test_an_entry_that_is_no_mapping_denies[sprintf("%v", [entry])] if {
	some entry in [["*"], "*", true, null]
	not visible(ask("b", {}), {"branches": {"b": entry}})
	not visible(ask("b", {"binding": "intent"}), {"branches": {"b": entry}})
}

test_refusals_say_why if {
	access := {"branches": {"b": {"tools": ["x"], "effects": ["read"]}}}
	reasons(ask("b", {}), access) == {"policy/access/data.yaml offers branch b no read tool called t"}
	reasons(ask("b", {"name": "x", "effect": "write"}), access) == {"policy/access/data.yaml offers branch b no write tool called x"}
}
