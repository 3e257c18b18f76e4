package catalogd.result

default allow := false

# What a tool of this program answers is for whoever may call it.
allow if input.tool.binding in {"jq", "func", "intent"}
