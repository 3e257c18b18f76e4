package catalogd.call

import data.catalogd.lib.access

default allow := false

allow if access.granted

deny contains "nobody greets Mallory" if input.arguments.name == "Mallory"
