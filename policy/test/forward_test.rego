package catalogd.forward_test

import data.catalogd.call
import data.catalogd.list

no_tool := {"name": "", "effect": "", "tags": [], "binding": "", "server": "", "trust": "", "deprecated": false}

about(branch, key, what) := {
	"branch": {"name": branch, "labels": {}},
	"tool": no_tool,
	key: what,
	"principal": {"name": "local", "groups": []},
}

resource(uri, template) := {"name": "w_page", "uri": uri, "template": template, "server": "wiki", "trust": "wiki", "action": "list"}

prompt(name) := {"name": name, "server": "wiki", "trust": "wiki", "action": "list"}

# Both points answer alike: what is listed is what can be read and got.
allowed(input_, output, access) if {
	listed := list with input as input_ with data.access as access
	called := call with input as object.union(input_, {"arguments": {}, "time": "2026-11-30T01:02:03Z"}) with data.access as access
	listed[output]
	called[output]
	count(listed.deny) + count(called.deny) == 0
}

refused(input_, output, access) := listed.deny if {
	listed := list with input as input_ with data.access as access
	called := call with input as object.union(input_, {"arguments": {}, "time": "2026-11-30T01:02:03Z"}) with data.access as access
	not listed[output]
	not called[output]
	listed.deny == called.deny
	count(listed.deny) > 0
}

may_read(uri, template, grant) if allowed(about("b", "resource", resource(uri, template)), "allow_resource", {"branches": {"b": grant}})

may_not_read(uri, template, grant) := refused(about("b", "resource", resource(uri, template)), "allow_resource", {"branches": {"b": grant}})

may_get(name, grant) if allowed(about("b", "prompt", prompt(name)), "allow_prompt", {"branches": {"b": grant}})

may_not_get(name, grant) := refused(about("b", "prompt", prompt(name)), "allow_prompt", {"branches": {"b": grant}})

test_nothing_by_default if {
	may_not_read("wiki://a", "", {"tools": ["*"]}) == {"policy/access/data.yaml offers branch b no resource wiki://a of server wiki"}
	may_not_get("w_greet", {"tools": ["*"]}) == {"policy/access/data.yaml offers branch b no prompt w_greet of server wiki"}
}

test_a_resource_goes_by_server_and_uri if {
	may_read("wiki://a/b", "", {"resources": {"wiki": ["wiki://*"]}})
	may_read("wiki://a/b", "", {"resources": {"wiki": ["file://*", "wiki://a/b"]}})
	may_not_read("wiki://a/b", "", {"resources": {"other": ["*"]}})
	may_not_read("wiki://a/b", "", {"resources": {"wiki": ["wiki://a"]}})
	may_not_read("wiki://a/b", "", {"prompts": {"wiki": ["*"]}})
}

test_a_template_goes_by_its_text if {
	may_read("", "wiki://{page}", {"resources": {"wiki": ["wiki://{page}"]}})
	may_read("wiki://a", "wiki://{page}", {"resources": {"wiki": ["wiki://{page}"]}})
	may_not_read("wiki://a", "wiki://{page}", {"resources": {"wiki": ["wiki://a"]}})
}

test_deny_takes_away if {
	all := {"resources": {"wiki": ["*"]}, "prompts": {"wiki": ["*"]}, "deny": ["*secret*", "w_admin"]}
	may_read("wiki://a", "wiki://{page}", all)
	may_not_read("wiki://secret", "", all) == {"policy/access/data.yaml denies branch b the resource wiki://secret"}
	may_not_read("wiki://secret", "wiki://{page}", all)
	may_get("w_greet", all)
	may_not_get("w_admin", all) == {"policy/access/data.yaml denies branch b the prompt w_admin"}
}

test_a_prompt_goes_by_server_and_name if {
	may_get("w_greet", {"prompts": {"wiki": ["w_*"]}})
	may_not_get("w_greet", {"prompts": {"other": ["*"]}})
	may_not_get("w_greet", {"prompts": {"wiki": ["greet"]}})
	may_not_get("w_greet", {"resources": {"wiki": ["*"]}})
}

test_a_branch_without_an_entry_sees_nothing if {
	refused(about("c", "resource", resource("wiki://a", "")), "allow_resource", {"branches": {"b": {"resources": {"wiki": ["*"]}}}})
	refused(about("c", "prompt", prompt("w_greet")), "allow_prompt", {"branches": {"b": {"prompts": {"wiki": ["*"]}}}})
}

test_relay_goes_by_name if {
	grant := {
		"resources": {"wiki": ["*"]}, "prompts": {"wiki": ["*"]}, "elicitation_hosts": ["login.example.com"],
		"relay": {"elicitation": ["w_greet"], "logging": ["w_*"], "roots": ["other"]},
	}
	relayed(about("b", "prompt", prompt("w_greet")), grant) == {"elicitation", "logging"}
	relayed(about("b", "resource", resource("wiki://a", "")), grant) == {"logging"}
	relayed(about("b", "prompt", prompt("w_greet")), object.remove(grant, ["prompts"])) == set()
}

relayed(input_, grant) := r if {
	r := call.relay with input as object.union(input_, {"arguments": {}, "time": "2026-11-30T01:02:03Z"}) with data.access as {"branches": {"b": grant}}
}
