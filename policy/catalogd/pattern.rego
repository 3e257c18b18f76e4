# Part of catalogd: do not edit. `catalogd init --upgrade` replaces it; rules of your own go in policy/*.rego.
# Names by pattern, as data files have them.
package catalogd.lib.pattern

# matches(pattern, name): * stands for any characters, everything else for itself.
default matches(_, _) := false

matches("*", _)

matches(pattern, name) if pattern == name

matches(pattern, name) if {
	contains(pattern, "*")
	parts := [glob.quote_meta(p) | some p in split(pattern, "*")]
	glob.match(concat("*", parts), null, name)
}
