# Who may list and call tools: staff, and the local operator.
package catalogd.lib.access

default granted := false

granted if input.principal.local

granted if "staff" in input.principal.groups
