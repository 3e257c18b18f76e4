package catalogd.result

default allow := false

allow if input.tool.effect == "read"
