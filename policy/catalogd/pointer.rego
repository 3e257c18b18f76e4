# Part of catalogd: do not edit. `catalogd init --upgrade` replaces it; rules of your own go in policy/*.rego.
# JSON pointers (RFC 6901), as redact of catalogd.result takes them.
package catalogd.lib.pointer

# of(path) is the pointer of a path as walk has it: /a/b~1c/0 of ["a", "b/c", 0]. Whatever is no list is the whole, "".
#
#   redact contains pointer.of(path) if {
#   	walk(input.result.structured, [path, value])
#   	regex.match(`^[^@ ]+@[^@ ]+$`, sprintf("%v", [value]))
#   }
of(path) := concat("", [concat("", ["/", step(key)]) | some key in path])

step(key) := replace(replace(key, "~", "~0"), "/", "~1") if is_string(key)

else := sprintf("%v", [key])
