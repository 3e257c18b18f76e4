package catalogd.discover_test

import data.catalogd.discover

test_unchanged if {
	answer := discover with input as {"change": "unchanged"}
	answer == {"allow": true}
}

test_new_waits if {
	answer := discover with input as {"change": "new"}
	answer == {"allow": false, "quarantine": true}
}

test_nothing_known_is_denied if {
	answer := discover with input as {}
	not answer.allow
}
