package catalogd.call_test

import data.catalogd.call

ask(principal, name) := {"principal": principal, "arguments": {"name": name}}

staff := {"name": "ann", "groups": ["staff"], "local": false}

guest := {"name": "bob", "groups": [], "local": false}

test_staff_may_greet if call.allow with input as ask(staff, "Ada")

test_guests_may_not if not call.allow with input as ask(guest, "Ada")

test_nobody_greets_mallory if call.deny["nobody greets Mallory"] with input as ask(staff, "Mallory")
