package catalogd.lib.pointer_test

import data.catalogd.lib.pointer

test_of[case.note] if {
	some case in [
		{"note": "the whole", "path": [], "want": ""},
		{"note": "keys and an index", "path": ["a", "b", 0], "want": "/a/b/0"},
		{"note": "what is escaped", "path": ["a/b", "m~n", "~1"], "want": "/a~1b/m~0n/~01"},
		{"note": "an empty key", "path": [""], "want": "/"},
		{"note": "a key that is a number", "path": ["0", 10], "want": "/0/10"},
		{"note": "no path", "path": null, "want": ""},
		{"note": "no path either", "path": "a", "want": ""},
	]
	pointer.of(case.path) == case.want
}

# The pointer of each path that walk has names the value at it.
test_walked if {
	doc := {"a": [{"b/c": 1}, {"d~": {"": 2}}]}
	every path in [p | walk(doc, [p, _])] {
		json.patch(doc, [{"op": "test", "path": pointer.of(path), "value": object.get(doc, path, doc)}])
	}
}
